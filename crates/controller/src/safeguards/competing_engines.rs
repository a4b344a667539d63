//! Another engine at work on the same Application: each would take back what the other does, for ever.

use std::time::Duration;

use tiphys_value::{ObjectExt, Value};
use tokio::time::Instant;

/// Field managers under which other engines write the status of Applications.
const ENGINES: [&str; 1] = ["argocd-application-controller"];
/// After so long without a write the other engine counts as gone: Argo CD writes every few minutes.
const GONE_AFTER: Duration = Duration::from_secs(600);

/// Another engine that was seen to write.
#[derive(Clone, Copy)]
pub(crate) struct Rival {
    manager: &'static str,
    seen: Instant,
    /// It was told of since it appeared.
    told: bool,
}

/// The other engine that has written an Application between two states of it. What it wrote before the
/// first of them may be left from the time when it was in charge.
pub(crate) fn writer(old: &Value, new: &Value) -> Option<&'static str> {
    ENGINES.into_iter().find(|manager| {
        let written = last_write(new, manager);
        written.is_some() && written != last_write(old, manager)
    })
}

/// When a manager last wrote. The time of an entry does not change when somebody else takes fields over
/// (Kubernetes API reference, `ManagedFieldsEntry`).
fn last_write<'a>(app: &'a Value, manager: &str) -> Option<&'a str> {
    let entries = app.at(&["metadata", "managedFields"]).and_then(Value::as_array)?;
    let own = entries.iter().filter(|entry| entry.str_at(&["manager"]) == Some(manager));
    own.filter_map(|entry| entry.str_at(&["time"])).max()
}

impl Rival {
    /// Another engine that has written just now; `last` is what was known of one so far.
    pub(crate) fn seen_now(manager: &'static str, last: Option<Self>) -> Self {
        let told = last.is_some_and(|rival| rival.told && rival.seen.elapsed() < GONE_AFTER);
        Self { manager, seen: Instant::now(), told }
    }

    /// What follows from it for the Application.
    pub(crate) fn verdict(self) -> Verdict {
        let since = self.seen.elapsed();
        if since >= GONE_AFTER {
            return Verdict::Gone;
        }
        let again_in = GONE_AFTER.saturating_sub(since);
        let message = (!self.told).then(|| {
            format!(
                "{} works on this Application too: nothing is done for it while two engines do. Stop one of them, or \
                 run this one with --shadow",
                self.manager
            )
        });
        Verdict::LeaveAlone { again_in, message }
    }

    /// The same after it was told of.
    pub(crate) fn reported(self) -> Self {
        Self { told: true, ..self }
    }
}

/// What follows for an Application from another engine that was seen to write it.
pub(crate) enum Verdict {
    /// It has not been seen for long: it counts as gone.
    Gone,
    /// Nothing is done for the Application for so long; with what to tell, if that was not told yet.
    LeaveAlone { again_in: Duration, message: Option<String> },
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    #[test]
    fn only_a_later_write_of_another_engine_counts() {
        let app = |theirs: &str, ours: &str| {
            json!({"metadata": {"managedFields": [
                {"manager": "argocd-application-controller", "time": theirs},
                {"manager": "tiphys-controller", "time": ours}]}})
        };
        assert_eq!(writer(&app("1", "1"), &app("1", "2")), None);
        assert_eq!(writer(&app("1", "2"), &app("3", "2")), Some(ENGINES[0]));
        assert_eq!(writer(&app("1", "2"), &json!({"metadata": {}})), None);
    }
}
