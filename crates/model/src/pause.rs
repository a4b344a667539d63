//! Pauses: until when nothing is synced to an Application or an object; ours.

use std::fmt;

use tiphys_value::ResourceKey;

use crate::{Application, Time, Timestamp, names};

/// Until when something is on hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// An instant.
    Time(Time),
    /// What stands there is no time. Somebody wanted a pause, so it lasts until a time is written.
    Unreadable(String),
}

impl Until {
    /// Reads the time of an annotation.
    pub fn read(text: &str) -> Self {
        Time::parse(text).map_or_else(|| Self::Unreadable(text.to_owned()), Self::Time)
    }

    /// The pause of an Application as a whole.
    pub fn for_app(app: &Application) -> Option<Self> {
        app.annotation(names::PAUSED_UNTIL).map(Self::read)
    }

    /// Whether the pause has come to its end.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.timestamp().is_some_and(|end| end <= now)
    }

    /// When it ends by itself.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::Time(time) => Some(time.timestamp()),
            Self::Unreadable(_) => None,
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Unreadable(text) => {
                write!(f, "somebody writes a time: {text:?} is none (such as 2027-01-31T18:00:00Z)")
            }
        }
    }
}

/// The objects of an Application that its annotation [`names::PAUSED_RESOURCES`] puts on hold, each `Err` an
/// entry that cannot be read.
pub fn paused_resources(app: &Application) -> impl Iterator<Item = Result<(ResourceKey, Until), &str>> {
    let entries = app.annotation(names::PAUSED_RESOURCES).unwrap_or_default().split(',').map(str::trim);
    entries.filter(|text| !text.is_empty()).map(|text| entry(text).ok_or(text))
}

/// `group/Kind/namespace/name=time`.
fn entry(text: &str) -> Option<(ResourceKey, Until)> {
    let (object, until) = text.split_once('=')?;
    let mut parts = object.splitn(4, '/');
    let key = ResourceKey::new(parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some((key, Until::read(until)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_holds() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("valid");
        assert!(Until::read("2026-01-01T11:00:00Z").is_over(now));
        assert!(!Until::read("2026-01-01T13:00:00Z").is_over(now));
        for text in ["", "tomorrow", "2026-01-01", "9999-12-31T23:59:59Z"] {
            assert!(!Until::read(text).is_over(now), "{text}");
        }
    }
}
