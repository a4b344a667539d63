//! What one survey leaves to the next, whose files are almost the same: nothing that holds still is read,
//! parsed or rendered again.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tiphys_model::settings::RenderSettings;
use tiphys_vfs::{EntryKind, FileTree, is_below};

use super::{
    discover::Parsed,
    files::{Files, Texts},
    rendering::{Renderings, Touched, those},
};

/// What surveys of one repository read and rendered.
#[derive(Clone, Default)]
pub struct Kept {
    pub(super) texts: Texts,
    pub(super) manifests: HashMap<Arc<str>, Arc<Parsed>>,
    /// Renderings of a survey that took some addresses to mean the repository,
    pub(super) renderings: Renderings,
    /// the addresses,
    pub(super) adopted: BTreeSet<String>,
    /// and those made before that was known, which are all there are if no address was.
    pub(super) unadopted: Renderings,
    /// What files say of the renderers, and the settings that all of these are made with.
    pub(super) settings: Option<(RenderSettings, RenderSettings)>,
}

impl Kept {
    /// What still holds in `tree`, in which only the files or folders of the paths `changed` are other than
    /// in `before`. An empty path stands for anything.
    pub fn after(&self, before: &Files, tree: &dyn FileTree, changed: &[String]) -> Self {
        let change = Change::from_changed_paths(before, tree, changed);
        if change.is_all {
            return Self::default();
        }
        Self {
            texts: before.all_texts().into_iter().filter(|(path, _)| !change.concerns_file(path)).collect(),
            manifests: self.manifests.clone(),
            renderings: those(&self.renderings, |it| !change.concerns(&it.touched)),
            adopted: self.adopted.clone(),
            unadopted: those(&self.unadopted, |it| !change.concerns(&it.touched)),
            settings: self.settings.clone(),
        }
    }

    /// The same with what manifest files say of another tree: what was parsed there is not parsed again where
    /// the texts are the same.
    #[must_use]
    pub fn with_manifests_of(mut self, other: &Self) -> Self {
        self.manifests.clone_from(&other.manifests);
        self
    }

    /// The same for some settings of the renderers: under others everything renders otherwise.
    pub(super) fn for_settings(&self, settings: &RenderSettings) -> Self {
        match self.settings.as_ref().is_some_and(|(_, used)| used == settings) {
            true => self.clone(),
            false => Self::default(),
        }
    }

    /// The settings under which files that say this were read the last time.
    pub(super) fn settings_for(&self, stated: &RenderSettings) -> Option<&RenderSettings> {
        self.settings.as_ref().filter(|(before, _)| before == stated).map(|(_, used)| used)
    }

    /// The same without what asked for sources that could not be had: they may be there by now.
    #[must_use]
    pub fn retrying(mut self) -> Self {
        self.renderings.retain(|_, rendering| rendering.missed.is_empty());
        self.unadopted.retain(|_, rendering| rendering.missed.is_empty());
        self
    }
}

/// How the files differ from before.
struct Change<'a> {
    is_all: bool,
    /// Files that were there and are there.
    edited: BTreeSet<&'a str>,
    /// What came or went.
    moved: Vec<&'a str>,
    /// Whatever is read through a link may be what changed.
    links: &'a BTreeSet<Arc<str>>,
}

impl<'a> Change<'a> {
    fn from_changed_paths(before: &'a Files, tree: &dyn FileTree, changed: &'a [String]) -> Self {
        let mut change = Self {
            is_all: changed.iter().any(String::is_empty),
            edited: BTreeSet::new(),
            moved: Vec::new(),
            links: before.links(),
        };
        for path in changed {
            let is_file = matches!(tree.kind(path), Ok(EntryKind::File));
            if is_file && before.contains(path) {
                change.edited.insert(path);
            } else {
                change.moved.push(path);
            }
        }
        change
    }

    fn concerns(&self, touched: &Touched) -> bool {
        let is_edited = self.edited.iter().any(|path| touched.paths.contains(*path));
        is_edited
            || touched.paths.iter().any(|path| {
                let is_moved =
                    self.moved.iter().any(|moved| is_at_or_below(path, moved) || is_at_or_below(moved, path));
                is_moved || self.is_linked(path)
            })
    }

    fn concerns_file(&self, path: &str) -> bool {
        self.edited.contains(path)
            || self.moved.iter().any(|moved| is_at_or_below(path, moved))
            || self.is_linked(path)
    }

    fn is_linked(&self, path: &str) -> bool {
        self.links.iter().any(|link| is_at_or_below(path, link))
    }
}

/// Whether a path is another one, or lies below it.
fn is_at_or_below(path: &str, above: &str) -> bool {
    above.is_empty() || path == above || is_below(path, above)
}
