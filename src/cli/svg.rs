//! What all pictures of the command line have in common.

use std::fmt::Display;

/// The colours: of what is said, of what stands out, and of what explains.
pub(super) const INK: &str = "#33373f";
pub(super) const RED: &str = "#b3452c";
pub(super) const SOFT: &str = "#5d636e";

/// The beginning of a picture in its own size, with a title and a line that explains it.
pub(super) fn begin(
    width: impl Display,
    height: impl Display,
    title: &str,
    legend: &str,
) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" fill=\"{INK}\">{}</text>\n\
         <text x=\"16\" y=\"44\" font-size=\"11\" fill=\"{SOFT}\">{legend}</text>\n",
        escaped(title)
    )
}

/// Words of people as text of a picture.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
