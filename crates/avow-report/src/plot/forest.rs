//! Intervals above one another, against a bound.

use plotters::prelude::*;

use super::{BLACK_, Drawn, GREY, PALETTE, PlotError, WIDTH, axis, drawing, font};

/// Estimates with intervals on one scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forest {
    /// What the scale is.
    pub scale: String,
    /// Values to which estimates are compared, each a dashed line.
    pub bounds: Vec<f64>,
    /// From top to bottom.
    pub lines: Vec<Line>,
}

/// One estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// The estimate.
    pub estimate: f64,
    /// The ends of the interval; an infinite end is drawn to the edge.
    pub interval: Option<(f64, f64)>,
}

impl Forest {
    pub(super) fn svg(&self) -> Result<String, PlotError> {
        let count = self.lines.len().max(1);
        drawing(70 + 26 * count as u32, |area| self.draw(area, count))
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>, count: usize) -> Drawn {
        let ends = self.lines.iter().flat_map(|line| line.interval).flat_map(|(low, high)| [low, high]);
        let all = ends.chain(self.lines.iter().map(|line| line.estimate)).chain(self.bounds.iter().copied());
        let (left, right) = axis::range(all);
        let height = count as f64;
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(42)
            .y_label_area_size(WIDTH / 4)
            .build_cartesian_2d(left..right, 0.0..height)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_y_axis()
            .x_desc(&self.scale)
            .x_label_formatter(&|x| axis::place(*x, right - left))
            .label_style(font(13))
            .axis_desc_style(font(13))
            .axis_style(BLACK_)
            .draw()?;
        for bound in self.bounds.iter().filter(|bound| axis::is_drawable(**bound)) {
            let line = [(*bound, 0.0), (*bound, height)];
            chart.draw_series(DashedLineSeries::new(line, 5, 4, GREY.stroke_width(1)))?;
        }
        let colour = PALETTE[0];
        for (position, line) in self.lines.iter().enumerate() {
            let y = height - position as f64 - 0.5;
            if let Some((low, high)) = line.interval {
                let ends = [(low.clamp(left, right), y), (high.clamp(left, right), y)];
                chart.draw_series(LineSeries::new(ends, colour.stroke_width(2)))?;
                // A cap where the interval ends; none where it goes on for ever.
                let caps = [low, high].into_iter().filter(|end| axis::is_drawable(*end));
                for end in caps {
                    let cap = [(end, y - 0.16), (end, y + 0.16)];
                    chart.draw_series(LineSeries::new(cap, colour.stroke_width(2)))?;
                }
            }
            if axis::is_drawable(line.estimate) {
                chart.draw_series([Circle::new((line.estimate, y), 4, colour.filled())])?;
            }
            let (_, pixel) = chart.backend_coord(&(left, y));
            area.draw_text(&axis::fitted(&line.name, 26), &font(13), (8, pixel - 7))?;
        }
        Ok(())
    }
}
