//! Which Applications a command is about.

use tiphys_schema::LabelSelector;
use tiphys_value::{ObjectExt, Value};

use super::session::{AppId, Session};
use crate::exit::WrongUse;

/// Applications by name, or by what they have in common.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Selection {
    /// The Applications.
    #[arg(value_name = "APP", required_unless_present_any = ["selector", "project"])]
    apps: Vec<String>,
    #[command(flatten)]
    filter: Filter,
}

/// Which Applications.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Filter {
    /// Labels: key=value, key!=value, key in (a,b), key.
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Only Applications of this project; may be given more than once.
    #[arg(long, short = 'p', value_name = "NAME")]
    project: Vec<String>,
}

impl Selection {
    /// The Applications: the named ones, or those that fit; if both are given, the named ones that fit.
    ///
    /// # Errors
    /// None fits, the selector cannot be read, or the cluster does not answer.
    pub(crate) async fn resolve(&self, session: &Session) -> anyhow::Result<Vec<AppId>> {
        let named: Vec<AppId> = self.apps.iter().map(|app| session.id(app)).collect::<Result<_, _>>()?;
        if !named.is_empty() && self.filter.is_empty() {
            return Ok(named);
        }
        let found = self.filter.choose(session.list().await?)?;
        let ids: Vec<AppId> = found
            .iter()
            .map(AppId::from_object)
            .filter(|id| named.is_empty() || named.contains(id))
            .collect();
        if ids.is_empty() {
            return Err(WrongUse("no Application fits the selector".into()).into());
        }
        Ok(ids)
    }
}

impl Filter {
    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.selector.is_none() && self.project.is_empty()
    }

    /// The Applications that fit, by name.
    ///
    /// # Errors
    /// The selector cannot be read.
    pub(crate) fn choose(&self, apps: Vec<Value>) -> anyhow::Result<Vec<Value>> {
        let selector = LabelSelector::parse(self.selector.as_deref().unwrap_or_default());
        let selector = selector.map_err(|error| WrongUse(format!("the selector cannot be read: {error}")))?;
        let mut chosen: Vec<Value> = apps
            .into_iter()
            .filter(|app| selector.matches(&app["metadata"]["labels"]))
            .filter(|app| self.project.is_empty() || self.project.iter().any(|name| name == project(app)))
            .collect();
        chosen.sort_by_key(AppId::from_object);
        Ok(chosen)
    }
}

fn project(app: &Value) -> &str {
    app.str_at(&["spec", "project"]).filter(|name| !name.is_empty()).unwrap_or("default")
}
