//! What the charts of a sprint have in common: letters, colours, the clock along the bottom, and PNG.
//!
//! Drawn for a phone: few, large letters on a light ground.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontStyle;

use crate::assets::CHART_FONT;

/// Width in pixels. A phone shows a picture some 400 points wide, so letters of [`LETTERS`] pixels come out at the size
/// of the text around it.
pub(super) const WIDTH: u32 = 960;
pub(super) const LETTERS: u32 = 30;
pub(super) const FONT: &str = "chart";

pub(super) const GROUND: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(super) const INK: RGBColor = RGBColor(0x33, 0x38, 0x40);
pub(super) const FAINT: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
pub(super) const STEADY: RGBColor = RGBColor(0xa4, 0xab, 0xb5);
pub(super) const BLUE: RGBColor = RGBColor(0x2f, 0x6f, 0xb7);

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The library for drawing.
    #[error("the chart could not be drawn: {0}")]
    Draw(String),
    /// The library for PNG.
    #[error("the chart could not be written as PNG: {0}")]
    Png(#[from] png::EncodingError),
}

/// Where a chart is drawn.
pub(super) type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// A picture of this height as PNG. The same drawing always gives the same bytes.
pub(super) fn picture(
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Result<(), String>,
) -> Result<Vec<u8>, ChartError> {
    know_the_font();
    let mut pixels = vec![0_u8; (WIDTH * height * 3) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (WIDTH, height)).into_drawing_area();
    let failed = |error: DrawingAreaErrorKind<_>| ChartError::Draw(format!("{error}"));
    area.fill(&GROUND).map_err(failed)?;
    draw(&area).map_err(ChartError::Draw)?;
    area.present().map_err(failed)?;
    drop(area);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, WIDTH, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(bytes)
}

/// How instants of a span of so many seconds are written, and how many of them fit.
pub(super) const fn clock(seconds: u64) -> (&'static str, usize) {
    match seconds / 3_600 {
        _ if seconds < 600 => ("%H:%M:%S", 4),
        0..36 => ("%H:%M", 6),
        36..96 => ("%m-%d %H:%M", 4),
        _ => ("%m-%d", 6),
    }
}

fn know_the_font() {
    static KNOWN: Once = Once::new();
    KNOWN.call_once(|| {
        if plotters::style::register_font(FONT, FontStyle::Normal, CHART_FONT).is_err() {
            tracing::warn!("the font of charts is broken");
        }
    });
}

/// A test for each chart: every letter of its words is in the font.
#[cfg(test)]
pub(super) fn letters_are_there(words: &str) {
    know_the_font();
    let drawn = |text: &str| {
        let mut pixels = vec![255_u8; 80 * 80 * 3];
        let area = BitMapBackend::with_buffer(&mut pixels, (80, 80)).into_drawing_area();
        let style = (FONT, 40).into_font().color(&BLACK);
        area.draw(&Text::new(text.to_owned(), (10, 10), style)).unwrap();
        drop(area);
        pixels
    };
    // A letter that the font does not have is drawn as the sign for a missing one.
    let missing = drawn("\u{10ffff}");
    let letters = (' '..='~').chain(words.chars());
    for letter in letters.filter(|letter| *letter != ' ') {
        assert_ne!(drawn(&letter.to_string()), missing, "{letter}");
        assert!(drawn(&letter.to_string()).iter().any(|part| *part < 128), "{letter}");
    }
}
