//! Charts: what is drawn where, computed here and shown by templates as SVG.

pub(crate) mod gantt;
pub(crate) mod series;
