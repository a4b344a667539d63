//! Normalise and compare target with live objects.
