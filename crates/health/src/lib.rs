//! Health of live objects.
