//! What names, labels and annotation keys may look like.
