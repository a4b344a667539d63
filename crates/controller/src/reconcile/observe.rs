//! What is there when an Application is looked at: its object, what is asked of the engine with it, and
//! whether another engine is at work on it.

use std::sync::Arc;

use tiphys_model::{Application, names};
use tiphys_value::{ObjectExt, Value};

use crate::{AppKey, Refresh, home::Home};

/// An Application as it is found.
pub(super) enum Observed {
    /// It is gone, or its namespace is not this engine's.
    NotOurs,
    /// Somebody wants it to be left alone.
    Skipped,
    /// It is not of its type.
    Unreadable { object: Arc<Value>, fault: String },
    /// It is to be looked at.
    App { object: Arc<Value>, app: Box<Application> },
}

/// Reads an Application from what is followed of the engine's own cluster.
pub(super) fn observe(home: &Home, key: &AppKey) -> Observed {
    let Some(object) = home.cache.peek(&key.of_application()) else { return Observed::NotOurs };
    if !home.installation().serves(&key.namespace, &home.settings) {
        return Observed::NotOurs;
    }
    if object.annotation(names::SKIP_RECONCILE) == Some("true") {
        return Observed::Skipped;
    }
    match Application::from_value(&object) {
        Ok(app) => Observed::App { object, app: Box::new(app) },
        Err(error) => Observed::Unreadable { object, fault: error.to_string() },
    }
}

/// What somebody asks for by an annotation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedRefresh {
    Nothing,
    /// What the sources are now counts.
    Normal,
    /// Nothing that is known counts.
    Hard,
}

/// Takes the request for a refresh out of an Application.
pub(super) fn take_refresh(app: &mut Application) -> AskedRefresh {
    match app.metadata.annotations.remove(names::REFRESH).as_deref() {
        Some("hard") => AskedRefresh::Hard,
        Some(_) => AskedRefresh::Normal,
        None => AskedRefresh::Nothing,
    }
}

/// How thoroughly an Application is looked at, by what led to the look and what is asked for.
pub(super) fn level_of(level: Refresh, asked: AskedRefresh, is_set_aside: bool) -> Refresh {
    match (asked, level) {
        (AskedRefresh::Hard, _) => Refresh::Hard,
        (AskedRefresh::Normal, level) => level.max(Refresh::Sources),
        (AskedRefresh::Nothing, Refresh::Poll) if is_set_aside => Refresh::LiveState,
        (AskedRefresh::Nothing, Refresh::Poll) => Refresh::Sources,
        (AskedRefresh::Nothing, level) => level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn what_somebody_asks_for_counts_before_what_led_to_the_look() {
        let asks = |refresh: &str| {
            let metadata = json!({"name": "a", "annotations": {names::REFRESH: refresh}});
            let mut app = Application::from_value(&json!({"metadata": metadata})).unwrap();
            let asked = take_refresh(&mut app);
            assert!(app.metadata.annotations.is_empty(), "it is asked once");
            asked
        };
        assert_eq!(level_of(Refresh::Poll, asks("hard"), true), Refresh::Hard);
        assert_eq!(level_of(Refresh::LiveState, asks("normal"), true), Refresh::Sources);
        assert_eq!(level_of(Refresh::Hard, asks("normal"), false), Refresh::Hard);
    }

    #[test]
    fn who_is_set_aside_is_not_asked_for_news_by_time() {
        let level = |level, is_set_aside| level_of(level, AskedRefresh::Nothing, is_set_aside);
        assert_eq!(level(Refresh::Poll, false), Refresh::Sources);
        assert_eq!(level(Refresh::Poll, true), Refresh::LiveState);
        assert_eq!(level(Refresh::Sources, true), Refresh::Sources, "a push was told of");
    }
}
