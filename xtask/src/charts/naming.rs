//! How the name of a Service follows from the release's name and overrides.

use std::{collections::BTreeMap, fmt};

use tiphys_value::Value;

use super::probe::{ChartVersion, RELEASE, Services, value_at};

/// A rule by which a chart names an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Naming {
    /// The usual full name, with its overrides below a path, cut to a length, before a suffix.
    Full { chart: String, path: String, most: usize, suffix: String },
    /// The release's name before a suffix.
    Release(String),
    /// The same name always.
    Fixed(String),
}

/// How long names may be (RFC 1123), and what charts cut to.
const LENGTHS: [usize; 8] = [63, 26, 24, 43, 45, 50, 53, 55];
const LONG_RELEASE: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvw";

/// What a chart is rendered with to tell the rules apart.
#[derive(Clone)]
struct Setting {
    release: String,
    /// The path of what is overridden, whether as a whole, and by what.
    over: Option<(String, bool)>,
}

impl Naming {
    fn name(&self, setting: &Setting) -> String {
        let release = setting.release.as_str();
        match self {
            Self::Fixed(name) => name.clone(),
            Self::Release(suffix) => format!("{release}{suffix}"),
            Self::Full { chart, path, most, suffix } => {
                let over = setting.over.as_ref().filter(|(at, _)| at == path);
                let full = match over {
                    Some((_, true)) => "ff".to_owned(),
                    Some((_, false)) => full_name(release, "nn"),
                    None => full_name(release, chart),
                };
                let cut: String = full.chars().take(*most).collect();
                format!("{}{suffix}", cut.trim_end_matches('-'))
            }
        }
    }
}

fn full_name(release: &str, chart: &str) -> String {
    if release.contains(chart) { release.to_owned() } else { format!("{release}-{chart}") }
}

impl fmt::Display for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(name) => f.write_str(name),
            Self::Release(suffix) => write!(f, "{{}}{suffix}"),
            Self::Full { chart, path, most, suffix } => {
                write!(f, "[{chart}")?;
                if !path.is_empty() {
                    write!(f, "@{path}")?;
                }
                if *most != LENGTHS[0] {
                    write!(f, "|{most}")?;
                }
                write!(f, "]{suffix}")
            }
        }
    }
}

/// Renderings of one version, each made once.
pub(super) struct Namings<'a> {
    version: &'a ChartVersion,
    made: BTreeMap<String, Option<Services>>,
}

impl<'a> Namings<'a> {
    pub(super) fn new(version: &'a ChartVersion) -> Self {
        Self { version, made: BTreeMap::new() }
    }

    /// The rule for a name that a Service has under the plain release name, if one holds everywhere.
    pub(super) fn naming_of(&mut self, name: &str) -> Option<Naming> {
        let mut candidates = Vec::new();
        if let Some(rest) = name.strip_prefix(RELEASE).and_then(|rest| rest.strip_prefix('-')) {
            let ends = rest.match_indices('-').map(|(at, _)| at).chain([rest.len()]);
            let charts: Vec<&str> = ends.map(|end| &rest[..end]).collect();
            for path in std::iter::once("").chain(self.version.dependencies.iter().map(String::as_str)) {
                // The shortest first: a longer one may hold only because another Service has its name.
                for chart in &charts {
                    let suffix = rest[chart.len()..].to_owned();
                    candidates.extend(LENGTHS.map(|most| Naming::Full {
                        chart: (*chart).to_owned(),
                        path: path.to_owned(),
                        most,
                        suffix: suffix.clone(),
                    }));
                }
            }
        }
        if let Some(suffix) = name.strip_prefix(RELEASE) {
            candidates.push(Naming::Release(suffix.to_owned()));
        } else {
            candidates.push(Naming::Fixed(name.to_owned()));
        }
        candidates.into_iter().find(|naming| self.holds(naming))
    }

    fn holds(&mut self, naming: &Naming) -> bool {
        let paths: Vec<String> =
            std::iter::once(String::new()).chain(self.version.dependencies.iter().cloned()).collect();
        let mut settings = vec![Setting { release: LONG_RELEASE.to_owned(), over: None }];
        let within = |word: &str| Setting { release: format!("x-{word}-y"), over: None };
        settings.push(within(&self.version.name));
        if let Naming::Full { chart, .. } = naming {
            settings.push(within(chart));
        }
        for path in &paths {
            settings.extend(
                [true, false]
                    .map(|whole| Setting { release: RELEASE.to_owned(), over: Some((path.clone(), whole)) }),
            );
        }
        settings.iter().all(|setting| {
            let expected = naming.name(setting);
            // Of names that are too long nobody asks where they are cut: no rule is told from these.
            let cut: String = expected.chars().take(LENGTHS[0]).collect();
            let cut = cut.trim_end_matches('-');
            // Charts refuse names that are too long, and overrides that they do not know.
            self.services(setting)
                .as_ref()
                .is_none_or(|made| made.contains_key(&expected) || made.contains_key(cut))
        })
    }

    fn services(&mut self, setting: &Setting) -> &Option<Services> {
        let key = format!("{} {:?}", setting.release, setting.over);
        let version = self.version;
        self.made.entry(key).or_insert_with(|| {
            let values = match &setting.over {
                None => Value::Object(tiphys_value::Map::new()),
                Some((path, whole)) => {
                    let (key, text) =
                        if *whole { ("fullnameOverride", "ff") } else { ("nameOverride", "nn") };
                    let steps = Some(path.clone()).filter(|it| !it.is_empty()).into_iter();
                    let path: Vec<String> = steps.chain([key.to_owned()]).collect();
                    value_at(&path, Value::from(text))
                }
            };
            version.services(&setting.release, &values).ok()
        })
    }
}
