//! Plots as SVG, legible in print and for colour-blind readers: marks differ in shape and lightness, and the
//! colours are those of Okabe and Ito (2008).

mod axis;
mod forest;
mod null;
mod paper;
mod strip;
mod trend;

use plotters::prelude::*;

pub use forest::{Forest, Line};
pub use null::Null;
pub use strip::{Group, Strip};
pub use trend::{Series, Trend};

/// A plot that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a plot cannot be drawn: {0}")]
pub struct PlotError(String);

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Estimates with their intervals, against a bound.
    Forest(Forest),
    /// An estimate in the distribution that it would have where its bound is true.
    Null(Null),
    /// Every value of a measurement, by group.
    Strip(Strip),
    /// A measurement along a numeric axis.
    Trend(Trend),
}

const BLACK_: RGBColor = RGBColor(0x11, 0x11, 0x11);
const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);
const PALETTE: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xe6, 0x9f, 0x00),
];
/// Pixels of width at the scale of the page.
const WIDTH: u32 = 760;

impl Plot {
    /// The plot as one `<svg>` element.
    pub fn svg(&self) -> Result<String, PlotError> {
        let drawn = match self {
            Plot::Forest(forest) => forest.svg()?,
            Plot::Null(null) => null.svg()?,
            Plot::Strip(strip) => strip.svg()?,
            Plot::Trend(trend) => trend.svg()?,
        };
        Ok(drawn)
    }
}

/// An empty drawing of a height, filled by `draw`.
fn drawing(
    height: u32,
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw(&area).map_err(|error| PlotError(error.to_string()))?;
        area.present().map_err(|error| PlotError(error.to_string()))?;
    }
    Ok(svg)
}

/// What drawing gives.
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The plain font of labels at a size in pixels.
fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK_)
}
