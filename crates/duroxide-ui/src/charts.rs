//! Charts: computes the positions of shapes, which templates draw as SVG.

pub(crate) mod gantt;
pub(crate) mod series;
