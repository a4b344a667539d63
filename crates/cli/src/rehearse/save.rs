//! Writes a cluster as it is at the end of a rehearsal, for `tiphys doctor` and for `--from`.

use std::{io::Write as _, path::Path};

use anyhow::Context as _;
use serde_json::{Value, json};
use tiphys_stage::Still;

use crate::commands::doctor::{
    mask_object,
    private_files::{new_file, new_folder},
    save::{ABOUT, check_new},
};

/// Writes all objects of a cluster into a new folder, for its owner alone, without credentials: of Secrets
/// the keys are kept, not the values.
///
/// # Errors
/// The folder is there already, or cannot be written.
pub(super) fn save(still: &Still, folder: &Path) -> anyhow::Result<()> {
    check_new(folder)?;
    let cannot = || format!("cannot write {}", folder.display());
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above).with_context(cannot)?;
    }
    new_folder(folder).with_context(cannot)?;
    let write = |name: String, value: &Value| {
        new_file(&folder.join(name)).and_then(|mut file| writeln!(file, "{value:#}")).with_context(cannot)
    };
    let snapshot = still.server().snapshot();
    for id in snapshot.resources() {
        let items: Vec<Value> =
            snapshot.list(id, None).map(|object| without_values(object.value().clone())).collect();
        if items.is_empty() {
            continue;
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let name = match id.group() {
            "" => id.resource().to_owned(),
            group => format!("{}.{group}", id.resource()),
        };
        write(format!("{name}.json"), &list)?;
    }
    // Ages are counted from the end of the story, not from the last thing that moved.
    let about = json!({
        "apiVersion": ABOUT.0,
        "kind": ABOUT.1,
        "metadata": {"name": "about"},
        "savedAt": still.at().to_string(),
        "savedBy": format!("tiphys {} rehearse", env!("CARGO_PKG_VERSION")),
    });
    write("about.json".to_owned(), &about)
}

fn without_values(mut object: Value) -> Value {
    mask_object(&mut object);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_stay_here() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"password": "aHVudGVyMg=="}});
        assert_eq!(without_values(secret)["data"], json!({"password": ""}));
        let container = json!({"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}});
        assert_eq!(without_values(pod)["spec"]["containers"][0]["env"][0]["value"], "***");
    }
}
