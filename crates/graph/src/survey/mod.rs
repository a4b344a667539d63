//! Reading a repository as the engine would: its Applications wherever they are declared, what every
//! source renders to, what that declares in turn, and what no Application reaches.

mod application_sets;
mod assemble;
mod attempt;
mod build;
mod chart_dependencies;
mod contents;
mod declarations;
mod digest;
mod discover;
mod environment;
mod files;
mod flux;
mod follow;
mod found;
mod grouping;
mod ignore_patterns;
mod incremental;
mod index;
mod input;
mod kinds;
mod local_sources;
mod names;
mod notice;
mod offline;
mod options;
mod partial_rendering;
mod places;
mod reading;
mod render_cache;
mod rendering;
mod repository_copies;
mod revision;
mod settings;
mod settings_text;
mod sops;
mod types;
mod units;
mod used;

pub use application_sets::{ANY_CLUSTER, UNTOLD};
pub use contents::Survey;
pub use declarations::Declarations;
pub use digest::unmarked;
pub use discover::was_to_declare;
pub use environment::{environment_of, parting as environment_parting};
pub use files::Files;
pub use flux::plain_names as flux_variables;
pub use ignore_patterns::is_git_ignored;
pub use incremental::Kept;
pub use index::ObjectScope;
pub use input::Input;
pub use kinds::is_namespaced;
pub use names::ENGINE_NAMESPACE;
pub use notice::Notice;
pub use offline::NoSources;
pub use options::Options;
pub use places::declared_span;
pub use render_cache::{LimitTogether, MAX_APPLICATIONS};
pub use repository_copies::Adoption;
pub use revision::Revision;
pub use settings::{StatedSettings, is_config_map};
pub use settings_text::settings_text;
pub use tiphys_model::Application;
pub use types::{
    App, AppId, Declaration, DeclaredId, Environment, EnvironmentId, Object, ObjectId, Outcome, Owner, Root,
    Set, SetId, Unit, UnitId, UnitKind, UnreadableExpression, UnreadableFile, Unseen, UnsetVariable,
};
pub use units::is_of_flux;
