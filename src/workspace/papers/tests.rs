//! The papers of a sprint, word for word.
