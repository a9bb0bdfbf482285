//! Every value, by group, with the group's mean.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{BLACK_, Drawn, GREY, PALETTE, PlotError, axis, drawing, font};

/// Values side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// What is measured.
    pub measure: String,
    /// What the groups are.
    pub grouping: String,
    /// From left to right.
    pub groups: Vec<Group>,
    /// Lines to compare with: a bound, a null.
    pub bounds: Vec<f64>,
}

/// The values of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its values; those that are no numbers are not drawn.
    pub values: Vec<f64>,
}

impl Strip {
    pub(super) fn svg(&self) -> Result<String, PlotError> {
        drawing(300, |area| self.draw(area))
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
        let values = self.groups.iter().flat_map(|group| group.values.iter().copied());
        let (low, high) = axis::range(values.chain(self.bounds.iter().copied()));
        let count = self.groups.len().max(1);
        let right = count as f64 - 0.5;
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(46)
            .y_label_area_size(72)
            .build_cartesian_2d(-0.5..right, low..high)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_label_formatter(&|y| axis::place(*y, high - low))
            .x_desc(&self.grouping)
            .y_desc(&self.measure)
            .label_style(font(13))
            .axis_desc_style(font(13))
            .light_line_style(WHITE)
            .bold_line_style(RGBColor(0xe4, 0xe4, 0xe4))
            .axis_style(BLACK_)
            .draw()?;
        let centred = font(13).pos(Pos::new(HPos::Center, VPos::Top));
        for (position, group) in self.groups.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(position as f64, low));
            area.draw_text(&axis::fitted(&group.name, (90 / count).max(3)), &centred, (x, y + 6))?;
        }
        for bound in self.bounds.iter().filter(|bound| axis::is_drawable(**bound)) {
            chart.draw_series(DashedLineSeries::new(
                [(-0.5, *bound), (right, *bound)],
                5,
                4,
                GREY.stroke_width(1),
            ))?;
        }
        for (position, group) in self.groups.iter().enumerate() {
            let finite: Vec<f64> =
                group.values.iter().copied().filter(|value| axis::is_drawable(*value)).collect();
            let total = finite.len();
            let place = |at: usize| position as f64 + spread(at, total);
            let marks = finite
                .iter()
                .enumerate()
                .map(|(at, value)| Circle::new((place(at), *value), 3, PALETTE[0].mix(0.65).filled()));
            chart.draw_series(marks)?;
            if total > 0 {
                let mean = finite.iter().map(|value| value / total as f64).sum::<f64>();
                let line = [(position as f64 - 0.28, mean), (position as f64 + 0.28, mean)];
                chart.draw_series(LineSeries::new(line, BLACK_.stroke_width(2)))?;
            }
        }
        Ok(())
    }
}

/// Where a value stands beside its group's middle, so that equal values can be told apart: the same at each drawing.
fn spread(at: usize, total: usize) -> f64 {
    if total < 2 {
        return 0.0;
    }
    // Steps of the golden ratio fill the width evenly for any number of values.
    let step = (at as f64 * 0.618_033_988_75).fract();
    (step - 0.5) * 0.4
}
