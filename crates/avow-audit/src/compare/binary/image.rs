//! Images as pixels. How they are compressed, and what is written beside the pixels (times, programs), is no part of them;
//! size, channels, depth, gamma and colour profile are.

use std::io::Cursor;

use avow_model::digest::BlobDigest;
use png::{ColorType, Decoder, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{Content, MOST, numbers};

/// A PNG image that does not move.
pub(super) fn png(bytes: &[u8]) -> Option<Content> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MOST });
    // A palette is spelled out, and less than a byte a pixel is widened.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().ok()?;
    if reader.info().is_animated() || reader.output_buffer_size() > MOST {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let info = reader.info();
    let profile = info.icc_profile.as_deref().map(|profile| BlobDigest::of(profile).to_string());
    let words = vec![
        format!("{} × {} {:?}", frame.width, frame.height, frame.color_type),
        format!("{:?} {:?} {profile:?}", info.source_gamma, info.srgb),
    ];
    let pixels = &pixels[..frame.buffer_size()];
    let kind = match (frame.bit_depth, frame.color_type) {
        (_, ColorType::Indexed) => return None,
        (png::BitDepth::Sixteen, _) => "u2",
        _ => "u1",
    };
    Some(Content { words, numbers: numbers(kind, pixels, true)? })
}

/// A JPEG image. Its decoder makes the same pixels of the same bytes on every machine.
pub(super) fn jpeg(bytes: &[u8]) -> Option<Content> {
    // Half an image is none.
    let options = DecoderOptions::default().set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let info = decoder.info()?;
    if decoder.output_buffer_size().is_none_or(|size| size > MOST) {
        return None;
    }
    let profile = decoder.icc_profile().map(|profile| BlobDigest::of(&profile).to_string());
    let pixels = decoder.decode().ok()?;
    let words = vec![format!("{} × {} × {} {profile:?}", info.width, info.height, info.components)];
    Some(Content { words, numbers: pixels.into_iter().map(f64::from).collect() })
}
