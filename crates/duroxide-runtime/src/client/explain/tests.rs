//! Tests of explanations.
