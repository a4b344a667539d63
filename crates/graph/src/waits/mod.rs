//! What waits for what when the repository is synced, and which waits can never end: Applications, waves,
//! hooks, the health rules that are really executed, definitions, namespaces, webhooks (Argo CD docs,
//! "Sync Phases and Waves", "Resource Health").
//!
//! Everything here holds for Argo CD's rules. Where a fact that would close a cycle is not in the
//! repository, nothing is reported.

mod events;
mod health;
mod needs;
mod operations;
mod settings;
mod webhooks;

pub use events::{Event, Events, Link};
pub use health::{ApplicationHealth, HealthFacts};
pub use needs::{Need, Stall, Unmet, unmet};
pub use operations::{Cycle, Hop, cycles};
pub use settings::{Setting, Settings};
pub use webhooks::{Blocked, blocked, retries};
