//! Reading a repository into a survey.

use std::collections::BTreeSet;

use tiphys_model::settings::RenderSettings;

use super::{
    build,
    contents::Survey,
    declarations::Declarations,
    files::Texts,
    incremental::Kept,
    input::Input,
    rendering::{self, Rendering, Renderings},
    repository_copies,
};

impl Survey {
    /// Reads a repository.
    pub fn read(input: &Input<'_>) -> Self {
        Self::keeping(input, &Kept::default()).0
    }

    /// Reads a repository of which an earlier survey left something; returns what this one leaves to the
    /// next.
    ///
    /// Unless they are given, the settings of the renderers are those of the repository's own `argocd-cm`, be
    /// it a file or an object that an Application renders.
    pub fn keeping(input: &Input<'_>, kept: &Kept) -> (Self, Kept) {
        let ground =
            Declarations::knowing(input.tree.clone(), input.folder, kept.texts.clone(), &kept.manifests);
        if let Some(settings) = &input.settings {
            return Self::read_under(input, &ground, settings, kept);
        }
        let stated = ground.settings.rendering();
        let first = kept.settings_for(&stated).unwrap_or(&stated).clone();
        let (mut survey, mut left) = Self::read_under(input, &ground, &first, kept);
        let holds = survey.rendered_settings().unwrap_or_else(|| stated.clone());
        if holds != first {
            (survey, left) = Self::read_under(input, &ground, &holds, &left);
        }
        left.settings = Some((stated, holds));
        (survey, left)
    }

    /// Reads a repository under settings of the renderers.
    fn read_under(
        input: &Input<'_>,
        ground: &Declarations,
        settings: &RenderSettings,
        kept: &Kept,
    ) -> (Self, Kept) {
        let kept = kept.for_settings(settings);
        let left = |renderings: Renderings, adopted: BTreeSet<String>, unadopted: Renderings| Kept {
            texts: Texts::new(),
            manifests: ground.manifests.parsed.clone(),
            renderings,
            adopted,
            unadopted,
            settings: None,
        };
        let under = Input { settings: Some(settings.clone()), ..input.with_addresses(input.is_given) };
        // Mostly files tell which addresses mean this repository, before anything is rendered.
        let mut adoption = ground.adoption(&[], &input.is_given);
        let mut unadopted = kept.unadopted.clone();
        if adoption.addresses.is_empty() {
            let (mut survey, renderings) = build::build(&under, ground, &kept.unadopted);
            let apps = survey.apps.iter().map(|app| &app.declared.value);
            let sets = survey.sets.iter().map(|set| &set.declared.value);
            adoption = repository_copies::addresses(apps.chain(sets), input.tree.as_ref(), &input.is_given);
            if adoption.addresses.is_empty() {
                survey.notices.sort();
                return (survey, left(Renderings::new(), BTreeSet::new(), renderings));
            }
            unadopted = renderings;
        }
        let adopted = adoption.addresses;
        let is_free = |rendering: &Rendering| rendering.touched.addresses.is_disjoint(&adopted);
        let renderings = if kept.adopted == adopted {
            kept.renderings.clone()
        } else {
            rendering::those(&unadopted, is_free)
        };
        let is_given = |url: &str| adopted.contains(url) || (input.is_given)(url);
        let (mut survey, renderings) = build::build(&under.with_addresses(&is_given), ground, &renderings);
        survey.notices.extend(adoption.notice);
        survey.notices.sort();
        survey.adopted.clone_from(&adopted);
        (survey, left(renderings, adopted, unadopted))
    }
}
