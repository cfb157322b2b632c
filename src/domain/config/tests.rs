//! Tests of the configuration types.
