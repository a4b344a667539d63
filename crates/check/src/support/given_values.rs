//! The values that a chart of the repository is given: its own, and those of the Applications that render it.

use std::sync::Arc;

use tiphys_value::Value;

use super::{chart_templates::in_chart, text_values};
use crate::Context;

/// Values that are given to a chart, and who gives them.
pub(crate) struct GivenValues {
    /// The values.
    pub values: Arc<Value>,
    /// Who gives them, for messages.
    pub who: String,
}

impl GivenValues {
    /// Those of the chart of a folder, its own first.
    pub(crate) fn of_chart(context: &Context<'_>, folder: &str) -> Vec<Self> {
        let files = &context.survey.files;
        let of_file = |path: &str| {
            let values = files.value(path)?;
            Some(Self { values, who: path.to_owned() })
        };
        let (chart, own) = (in_chart(folder, "Chart.yaml"), in_chart(folder, "values.yaml"));
        let mut given: Vec<Self> = of_file(&own).into_iter().collect();
        for app in context.survey.apps.iter().filter(|app| app.read.contains(chart.as_str())) {
            let is_other = |path: &&Arc<str>| path.contains("values") && ***path != *own;
            given.extend(app.read.iter().filter(is_other).filter_map(|path| of_file(path)));
            let sources = app.application.spec.effective_sources();
            for values in sources.iter().filter_map(|it| it.helm.as_ref()).flat_map(text_values::of_source) {
                given.push(Self { values: Arc::new(values), who: format!("Application {}", app.name()) });
            }
        }
        given
    }
}
