//! What a test compares an estimate with: the distribution it would have where the bound is true.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{BLACK_, Drawn, GREY, PALETTE, PlotError, axis, drawing, font};

/// A histogram with the estimate in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Null {
    /// What is estimated.
    pub scale: String,
    /// Where the first bin begins and the last one ends.
    pub ends: (f64, f64),
    /// The share in each bin, all equally wide.
    pub shares: Vec<f64>,
    /// The bound that is taken to be true.
    pub bound: f64,
    /// The estimate.
    pub observed: f64,
}

impl Null {
    pub(super) fn svg(&self) -> Result<String, PlotError> {
        drawing(240, |area| self.draw(area))
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
        let (left, right) = axis::range([self.ends.0, self.ends.1, self.bound, self.observed]);
        let top = self.shares.iter().copied().filter(|share| axis::is_drawable(*share)).fold(0.0, f64::max);
        // Above the bars there is room for the words.
        let high = if top > 0.0 { top * 1.25 } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(46)
            .y_label_area_size(72)
            .build_cartesian_2d(left..right, 0.0..high)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .y_labels(5)
            .x_label_formatter(&|x| axis::place(*x, right - left))
            .y_label_formatter(&|y| axis::place(*y, high))
            .x_desc(&self.scale)
            .y_desc("share")
            .label_style(font(13))
            .axis_desc_style(font(13))
            .axis_style(BLACK_)
            .draw()?;
        let width = (self.ends.1 - self.ends.0) / self.shares.len().max(1) as f64;
        let bars = self.shares.iter().enumerate().map(|(place, share)| {
            let from = self.ends.0 + width * place as f64;
            Rectangle::new([(from, 0.0), (from + width, *share)], GREY.mix(0.45).filled())
        });
        chart.draw_series(bars)?;
        let bound = [(self.bound, 0.0), (self.bound, top * 1.08)];
        chart.draw_series(DashedLineSeries::new(bound, 5, 4, BLACK_.stroke_width(1)))?;
        let observed = [(self.observed, 0.0), (self.observed, top * 1.08)];
        chart.draw_series(LineSeries::new(observed, PALETTE[1].stroke_width(3)))?;
        chart.draw_series([TriangleMarker::new((self.observed, top * 1.08), 6, PALETTE[1].filled())])?;
        let (x, y) = chart.backend_coord(&(self.observed, top * 1.08));
        // The words stand on the side where there is room.
        let side = if self.observed > (left + right) / 2.0 { (HPos::Right, -10) } else { (HPos::Left, 10) };
        let style = font(13).pos(Pos::new(side.0, VPos::Center));
        area.draw_text(&format!("observed: {}", axis::label(self.observed)), &style, (x + side.1, y))?;
        Ok(())
    }
}
