//! The flags of `app create` and `app set`: parts of an Application's spec, by Argo CD's names.

use tiphys_diag::similar_names::similar;
use tiphys_model::{
    Application, ApplicationSource, Automated, HelmParameter, HelmSource, KustomizeSource, SYNC_OPTIONS,
    SyncPolicy,
};

use crate::exit::WrongUse;

/// Parts of a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct SpecArgs {
    /// Project.
    #[arg(long)]
    project: Option<String>,
    /// Repository: Git, Helm, or oci://.
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// Folder in the repository.
    #[arg(long)]
    path: Option<String>,
    /// Branch, tag, commit, or version of the chart.
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    /// Chart of a Helm repository.
    #[arg(long)]
    helm_chart: Option<String>,
    /// Address of the destination cluster.
    #[arg(long, value_name = "URL", conflicts_with = "dest_name")]
    dest_server: Option<String>,
    /// Name of the destination cluster.
    #[arg(long, value_name = "NAME")]
    dest_name: Option<String>,
    /// Namespace of objects that name none.
    #[arg(long, value_name = "NAMESPACE")]
    dest_namespace: Option<String>,
    /// Whether it syncs by itself.
    #[arg(long, value_name = "POLICY", value_parser = ["automated", "auto", "none", "manual"])]
    sync_policy: Option<String>,
    /// Automated sync deletes what left the sources.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    auto_prune: Option<bool>,
    /// Automated sync undoes changes made in the cluster.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    self_heal: Option<bool>,
    /// Automated sync may delete everything.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    allow_empty: Option<bool>,
    /// A sync option such as CreateNamespace=true; a leading ! takes one away.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sync_option: Vec<String>,
    /// How many history entries are kept.
    #[arg(long, value_name = "N")]
    revision_history_limit: Option<i64>,
    /// Release name.
    #[arg(long, value_name = "NAME")]
    release_name: Option<String>,
    /// Values file of the chart.
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// A value of the chart: key=value.
    #[arg(long, value_name = "KEY=VALUE")]
    helm_set: Vec<String>,
    /// A value of the chart that stays a string: key=value.
    #[arg(long, value_name = "KEY=VALUE")]
    helm_set_string: Vec<String>,
    /// A parameter of the chart: key=value, as --helm-set.
    #[arg(long, short = 'p', value_name = "KEY=VALUE")]
    parameter: Vec<String>,
    /// Prefix of Kustomize for names.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    nameprefix: Option<String>,
    /// Suffix of Kustomize for names.
    #[arg(long, value_name = "SUFFIX", allow_hyphen_values = true)]
    namesuffix: Option<String>,
    /// An image of Kustomize: [old=]image[:tag|@digest].
    #[arg(long, value_name = "IMAGE")]
    kustomize_image: Vec<String>,
    /// Read the folder's folders too.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    directory_recurse: Option<bool>,
    /// Which source of several, counted from 1.
    #[arg(long, value_name = "N")]
    source_position: Option<usize>,
    /// A label of the Application: key=value.
    #[arg(long, short = 'l', value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// An annotation of the Application: key=value.
    #[arg(long, value_name = "KEY=VALUE")]
    annotations: Vec<String>,
}

impl SpecArgs {
    /// Whether nothing is given but which source is meant.
    pub(crate) fn is_empty(&self) -> bool {
        let position = self.source_position;
        *self == Self { source_position: position, ..Self::default() }
    }

    /// Says on stderr which sync options the engine does not know: they are kept, and have no effect.
    pub(crate) fn warn(&self) {
        self.sync_option.iter().for_each(|option| warn_of_option(option.trim_start_matches('!')));
    }

    /// Sets what was given on an Application.
    ///
    /// # Errors
    /// A pair has no `=`, there is no such source, or nothing to set it on.
    pub(crate) fn apply(&self, app: &mut Application) -> Result<(), WrongUse> {
        set(&mut app.spec.project, &self.project);
        self.destination(app);
        self.policy(app);
        if self.revision_history_limit.is_some() {
            app.spec.revision_history_limit = self.revision_history_limit;
        }
        for (list, map) in
            [(&self.label, &mut app.metadata.labels), (&self.annotations, &mut app.metadata.annotations)]
        {
            for one in list {
                let (key, value) = pair(one)?;
                map.insert(key, value);
            }
        }
        if self.touches_source() { self.source(source_of(app, self.source_position)?) } else { Ok(()) }
    }

    fn touches_source(&self) -> bool {
        let texts = [
            &self.repo,
            &self.path,
            &self.revision,
            &self.helm_chart,
            &self.release_name,
            &self.nameprefix,
            &self.namesuffix,
        ];
        let lists =
            [&self.values, &self.helm_set, &self.helm_set_string, &self.parameter, &self.kustomize_image];
        texts.iter().any(|text| text.is_some())
            || lists.iter().any(|list| !list.is_empty())
            || self.directory_recurse.is_some()
    }

    fn destination(&self, app: &mut Application) {
        let destination = &mut app.spec.destination;
        set(&mut destination.namespace, &self.dest_namespace);
        if let Some(server) = &self.dest_server {
            server.clone_into(&mut destination.server);
            destination.name.clear();
        }
        if let Some(name) = &self.dest_name {
            name.clone_into(&mut destination.name);
            destination.server.clear();
        }
    }

    fn policy(&self, app: &mut Application) {
        let flags = [self.auto_prune, self.self_heal, self.allow_empty];
        if self.sync_policy.is_none() && self.sync_option.is_empty() && flags.iter().all(Option::is_none) {
            return;
        }
        let policy = app.spec.sync_policy.get_or_insert_with(SyncPolicy::default);
        match self.sync_policy.as_deref() {
            Some("none" | "manual") => policy.automated = None,
            Some(_) => {
                policy.automated.get_or_insert_with(Automated::default).enabled = None;
            }
            None => {}
        }
        if let Some(automated) = &mut policy.automated {
            automated.prune = self.auto_prune.or(automated.prune);
            automated.self_heal = self.self_heal.or(automated.self_heal);
            automated.allow_empty = self.allow_empty.or(automated.allow_empty);
        }
        for option in &self.sync_option {
            let taken = option.strip_prefix('!');
            let name = taken.unwrap_or(option).split('=').next().unwrap_or_default();
            policy.sync_options.retain(|known| known.split('=').next() != Some(name));
            if taken.is_none() {
                policy.sync_options.push(option.clone());
            }
        }
    }

    fn source(&self, source: &mut ApplicationSource) -> Result<(), WrongUse> {
        set(&mut source.repo_url, &self.repo);
        set(&mut source.path, &self.path);
        set(&mut source.target_revision, &self.revision);
        set(&mut source.chart, &self.helm_chart);
        let set_helm = [&self.values, &self.helm_set, &self.helm_set_string, &self.parameter];
        if self.release_name.is_some() || set_helm.iter().any(|list| !list.is_empty()) {
            self.helm(source.helm.get_or_insert_with(HelmSource::default))?;
        }
        if self.nameprefix.is_some() || self.namesuffix.is_some() || !self.kustomize_image.is_empty() {
            self.kustomize(source.kustomize.get_or_insert_with(KustomizeSource::default));
        }
        if let Some(recurse) = self.directory_recurse {
            source.directory.get_or_insert_default().recurse = recurse;
        }
        Ok(())
    }

    fn helm(&self, helm: &mut HelmSource) -> Result<(), WrongUse> {
        set(&mut helm.release_name, &self.release_name);
        if !self.values.is_empty() {
            helm.value_files.clone_from(&self.values);
        }
        let plain = self.helm_set.iter().chain(&self.parameter).map(|one| (one, false));
        for (one, force_string) in plain.chain(self.helm_set_string.iter().map(|one| (one, true))) {
            let (name, value) = pair(one)?;
            helm.parameters.retain(|known| known.name != name);
            helm.parameters.push(HelmParameter { name, value, force_string });
        }
        Ok(())
    }

    fn kustomize(&self, kustomize: &mut KustomizeSource) {
        set(&mut kustomize.name_prefix, &self.nameprefix);
        set(&mut kustomize.name_suffix, &self.namesuffix);
        for image in &self.kustomize_image {
            kustomize.images.retain(|known| image_name(known) != image_name(image));
            kustomize.images.push(image.clone());
        }
    }
}

/// Says on stderr that the engine does not know a sync option.
pub(crate) fn warn_of_option(option: &str) {
    let key = option.split('=').next().unwrap_or_default();
    if SYNC_OPTIONS.contains(&key) {
        return;
    }
    let like = similar(key, SYNC_OPTIONS.into_iter());
    let like = if like.is_empty() { String::new() } else { format!("; did you mean {}?", like.join(" or ")) };
    eprintln!("warning: {key:?} is no sync option that is known, and has no effect{like}");
}

/// The image that an override is of.
fn image_name(image: &str) -> &str {
    let image = image.split('=').next().unwrap_or_default();
    let image = image.split('@').next().unwrap_or_default();
    // A colon before the last slash belongs to the host.
    let start = image.rfind('/').map_or(0, |at| at + 1);
    image[start..].find(':').map_or(image, |at| &image[..start + at])
}

fn set(field: &mut String, given: &Option<String>) {
    if let Some(given) = given {
        field.clone_from(given);
    }
}

fn pair(text: &str) -> Result<(String, String), WrongUse> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or_else(|| WrongUse(format!("{text:?} is not of the form key=value")))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn source_of(app: &mut Application, position: Option<usize>) -> Result<&mut ApplicationSource, WrongUse> {
    let count = app.spec.sources.len();
    if count == 0 {
        if let Some(position) = position.filter(|position| *position != 1) {
            return Err(WrongUse(format!("the Application has one source, and no source {position}")));
        }
        return Ok(app.spec.source.get_or_insert_with(ApplicationSource::default));
    }
    let fault = || {
        WrongUse(format!(
            "the Application has {count} sources; say which one with --source-position 1 to {count}"
        ))
    };
    let at = position.and_then(|position| position.checked_sub(1)).ok_or_else(fault)?;
    app.spec.sources.get_mut(at).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> SpecArgs {
        SpecArgs {
            repo: Some("https://git.example.com/a".into()),
            path: Some("apps".into()),
            dest_name: Some("in-cluster".into()),
            sync_policy: Some("automated".into()),
            auto_prune: Some(true),
            sync_option: vec!["CreateNamespace=true".into()],
            helm_set: vec!["image.tag=1".into()],
            ..SpecArgs::default()
        }
    }

    #[test]
    fn flags_become_a_spec() {
        let mut app = Application::default();
        app.spec.destination.server = "https://old".into();
        given().apply(&mut app).unwrap();
        assert!(app.automated_policy().unwrap().prunes());
        assert!(app.spec.destination.server.is_empty() && app.spec.destination.name == "in-cluster");
        assert_eq!(app.spec.source.as_ref().unwrap().helm.as_ref().unwrap().parameters[0].name, "image.tag");
    }

    #[test]
    fn a_second_time_replaces_and_a_mark_removes() {
        let mut app = Application::default();
        given().apply(&mut app).unwrap();
        let again = SpecArgs {
            sync_option: vec!["!CreateNamespace".into(), "PruneLast=true".into()],
            helm_set: vec!["image.tag=2".into()],
            sync_policy: Some("none".into()),
            ..SpecArgs::default()
        };
        again.apply(&mut app).unwrap();
        assert_eq!(app.spec.sync_policy.as_ref().unwrap().sync_options, ["PruneLast=true"]);
        assert!(app.automated_policy().is_none());
        assert_eq!(app.spec.source.as_ref().unwrap().helm.as_ref().unwrap().parameters.len(), 1);
    }

    #[test]
    fn one_of_several_sources_must_be_named() {
        let mut app = Application::default();
        app.spec.sources = vec![ApplicationSource::default(), ApplicationSource::default()];
        let mut args = SpecArgs { path: Some("x".into()), ..SpecArgs::default() };
        assert!(args.apply(&mut app).unwrap_err().0.contains("--source-position 1 to 2"));
        args.source_position = Some(2);
        args.apply(&mut app).unwrap();
        assert_eq!(app.spec.sources[1].path, "x");
        let fault = args.apply(&mut Application::default()).unwrap_err();
        assert!(fault.0.contains("no source 2"), "{fault}");
    }

    #[test]
    fn images_are_replaced_by_name() {
        assert_eq!(image_name("registry.example.com:5000/a/b:1.2"), "registry.example.com:5000/a/b");
        assert_eq!(image_name("old=new:1"), "old");
        assert_eq!(image_name("a@sha256:00"), "a");
    }
}
