//! Plots as PNG and PDF.
//!
//! The SVG is what is drawn; both forms are made of it. Text is set in a font that travels along (DejaVu Sans, see
//! `fonts/`), so that a plot is the same on every machine. Characters that the font lacks are drawn as boxes, as SVG
//! leaves them to the reader's own fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::{Plot, PlotError};

const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels of a drawing to an inch of paper.
const DPI: f32 = 96.0;

impl Plot {
    /// The plot as a PNG image on white, at so many dots per inch.
    ///
    /// # Errors
    /// Where it cannot be drawn, or would be too large to be held.
    pub fn png(&self, dpi: u16) -> Result<Vec<u8>, PlotError> {
        let tree = tree(&self.svg()?)?;
        let scale = f32::from(dpi) / DPI;
        let size = tree.size().to_int_size().scale_by(scale);
        let mut pixels = size.and_then(|size| Pixmap::new(size.width(), size.height())).ok_or_else(|| {
            PlotError(format!("at {dpi} dots per inch it has no size that an image can have"))
        })?;
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| PlotError(error.to_string()))
    }

    /// The plot as a PDF file of one page, with text that can be searched.
    ///
    /// # Errors
    /// Where it cannot be drawn.
    pub fn pdf(&self) -> Result<Vec<u8>, PlotError> {
        let tree = tree(&self.svg()?)?;
        let page = svg2pdf::PageOptions { dpi: DPI };
        svg2pdf::to_pdf(&tree, svg2pdf::ConversionOptions::default(), page)
            .map_err(|error| PlotError(error.to_string()))
    }
}

fn tree(svg: &str) -> Result<Tree, PlotError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| PlotError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use crate::plot::{Group, Plot, Strip};

    fn plot() -> Plot {
        let group = |name: &str, values: &[f64]| Group { name: name.to_owned(), values: values.to_vec() };
        let groups = vec![group("0", &[1.0, 2.0]), group("0.1", &[2.0, f64::NAN, 4.0])];
        let (measure, grouping) = ("accuracy <&>".to_owned(), "wd".to_owned());
        Plot::Strip(Strip { measure, grouping, groups, bounds: vec![1.5] })
    }

    #[test]
    fn a_png_has_the_size_of_its_resolution_and_something_on_it() {
        let read = |bytes: &[u8]| {
            assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
            let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            (number(16), number(20))
        };
        let (coarse, fine) = (plot().png(96).expect("drawn"), plot().png(288).expect("drawn"));
        assert_eq!(read(&coarse), (760, 300));
        assert_eq!(read(&fine), (2280, 900));
        let image = resvg::tiny_skia::Pixmap::decode_png(&coarse).expect("what was written is read");
        let dark = image.pixels().iter().filter(|pixel| pixel.red() < 80).count();
        assert!(dark > 500, "axes and text: {dark}");
        assert!(plot().png(0).is_err());
    }

    #[test]
    fn a_pdf_is_one_page_with_its_font() {
        let bytes = plot().pdf().expect("drawn");
        assert!(bytes.starts_with(b"%PDF-1.") && bytes.trim_ascii_end().ends_with(b"%%EOF"));
        let count = |text: &[u8]| bytes.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"/Type /Page\n"), count(b"/Count 1")), (1, 1));
        assert!(count(b"DejaVuSans") > 0);
    }
}
