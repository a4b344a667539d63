//! Yes, no, or not known.

/// Yes, no, or not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tri {
    /// It is not so.
    No,
    /// The repository does not settle it.
    Maybe,
    /// It is so.
    Yes,
}

impl Tri {
    /// Whether any is so; no for none.
    pub fn any(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::No)
    }

    /// Whether all are so; yes for none.
    pub fn all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().min().unwrap_or(Self::Yes)
    }
}

impl From<bool> for Tri {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}
