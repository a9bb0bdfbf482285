//! A measurement along a numeric axis: every value, the means joined, and a formula where one is claimed.

use plotters::prelude::*;

use super::{BLACK_, Drawn, PALETTE, PlotError, axis, drawing, font};

/// Series along one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trend {
    /// What is measured.
    pub measure: String,
    /// Along what.
    pub along: String,
    /// The series.
    pub series: Vec<Series>,
    /// What a formula says, as points of a curve.
    pub formula: Vec<(f64, f64)>,
}

/// One series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name; empty where there is only one.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Trend {
    pub(super) fn svg(&self) -> Result<String, PlotError> {
        drawing(320, |area| self.draw(area))
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let own = self.series.iter().flat_map(|series| series.points.iter().copied());
        own.chain(self.formula.iter().copied())
            .filter(|(x, y)| axis::is_drawable(*x) && axis::is_drawable(*y))
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
        let (left, right) = axis::range(self.points().map(|(x, _)| x));
        let (low, high) = axis::range(self.points().map(|(_, y)| y));
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(46)
            .y_label_area_size(72)
            .build_cartesian_2d(left..right, low..high)?;
        chart
            .configure_mesh()
            .x_label_formatter(&|x| axis::place(*x, right - left))
            .y_label_formatter(&|y| axis::place(*y, high - low))
            .x_desc(&self.along)
            .y_desc(&self.measure)
            .label_style(font(13))
            .axis_desc_style(font(13))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(0xe4, 0xe4, 0xe4))
            .axis_style(BLACK_)
            .draw()?;
        for (position, series) in self.series.iter().enumerate() {
            let colour = PALETTE[position % PALETTE.len()];
            let finite =
                series.points.iter().copied().filter(|(x, y)| axis::is_drawable(*x) && axis::is_drawable(*y));
            let points: Vec<_> = finite.collect();
            let (fill, kind) = (colour.mix(0.65), position % 4);
            // Marks differ in form, so that series are told apart without their colours.
            let places = points.iter().copied();
            match kind {
                0 => chart.draw_series(places.map(|at| Circle::new(at, 3, fill.filled())))?,
                1 => chart.draw_series(places.map(|at| TriangleMarker::new(at, 4, fill.filled())))?,
                2 => chart.draw_series(places.map(|at| Cross::new(at, 3, fill.stroke_width(2))))?,
                _ => chart.draw_series(places.map(|at| Circle::new(at, 3, fill.stroke_width(2))))?,
            };
            let joined = chart.draw_series(LineSeries::new(means(&points), colour.stroke_width(2)))?;
            if !series.name.is_empty() {
                let joined = joined.label(axis::fitted(&series.name, 30));
                match kind {
                    0 => joined.legend(move |(x, y)| Circle::new((x + 9, y), 3, colour.filled())),
                    1 => joined.legend(move |(x, y)| TriangleMarker::new((x + 9, y), 4, colour.filled())),
                    2 => joined.legend(move |(x, y)| Cross::new((x + 9, y), 3, colour.stroke_width(2))),
                    _ => joined.legend(move |(x, y)| Circle::new((x + 9, y), 3, colour.stroke_width(2))),
                };
            }
        }
        if !self.formula.is_empty() {
            let curve = DashedLineSeries::new(self.formula.iter().copied(), 6, 4, BLACK_.stroke_width(2));
            let mark = |(x, y): (i32, i32)| PathElement::new([(x, y), (x + 18, y)], BLACK_.stroke_width(2));
            chart.draw_series(curve)?.label("formula").legend(mark);
        }
        if self.series.iter().any(|series| !series.name.is_empty()) || !self.formula.is_empty() {
            let legend = &mut chart.configure_series_labels();
            legend
                .label_font(font(13))
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK_.mix(0.3))
                .draw()?;
        }
        Ok(())
    }
}

/// The mean at each place, from left to right.
fn means(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let same = |a: &(f64, f64), b: &(f64, f64)| a.0 == b.0;
    let mean = |group: &[(f64, f64)]| {
        let sum = group.iter().map(|(_, y)| y / group.len() as f64).sum();
        (group[0].0, sum)
    };
    sorted.chunk_by(same).map(mean).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn means_are_taken_place_by_place() {
        let points = [(2.0, 1.0), (1.0, 4.0), (2.0, 3.0)];
        assert_eq!(super::means(&points), [(1.0, 4.0), (2.0, 2.0)]);
    }
}
