//! Another engine at work on the same Application: each would take back what the other does, for ever.

use std::time::Duration;

use tiphys_model::{Application, Condition, ConditionType};
use tiphys_value::{ObjectExt, Value};
use tokio::time::Instant;

use crate::{AppKey, engine::Engine, reconcile::Next, status_fields::set_conditions};

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

impl Engine {
    /// Notes that another engine has written an Application.
    pub(crate) fn note_rival(&self, key: &AppKey, manager: &'static str) {
        let mut memory = self.memory();
        let known = memory.entry(key.clone()).or_default();
        let told = known.rival.is_some_and(|rival| rival.told && rival.seen.elapsed() < GONE_AFTER);
        known.rival = Some(Rival { manager, seen: Instant::now(), told });
    }

    /// Leaves an Application alone that another engine works on, and says so; `None` if there is no other.
    pub(crate) async fn leave_to_rival(
        &self,
        key: &AppKey,
        app: &mut Application,
        object: &Value,
    ) -> Option<Next> {
        let rival = self.memory().get(key).and_then(|known| known.rival)?;
        let since = rival.seen.elapsed();
        if since >= GONE_AFTER {
            self.set_rival(key, None);
            return None;
        }
        if !rival.told {
            self.set_rival(key, Some(Rival { told: true, ..rival }));
            let message = format!(
                "{} works on this Application too: nothing is done for it while two engines do. Stop one of them, or \
                 run this one with --shadow",
                rival.manager
            );
            tracing::error!(app = %key.name, "{message}");
            crate::events::record(&self.cache, app, "OtherEngine", &message, self.now()).await;
            set_conditions(app, vec![Condition::new(ConditionType::OtherEngine, message)], self.now());
            self.write(key, object, app).await;
        }
        Some(Next { at: Some(tiphys_model::time::after(self.now(), GONE_AFTER - since)), ..Next::default() })
    }

    fn set_rival(&self, key: &AppKey, rival: Option<Rival>) {
        if let Some(known) = self.memory().get_mut(key) {
            known.rival = rival;
        }
    }
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
