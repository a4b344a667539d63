//! Parsed templates, kept over the renderings of a chart.

use std::sync::{Arc, atomic::AtomicBool};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tiphys_gotemplate::{MissingKey, TemplateSet, Text, TextContent};

use super::{
    errors, functions,
    parallel::{BackgroundParser, ParsedTemplates},
    state::ROOT,
};
use crate::{HelmError, RenderOptions, TemplateError, chart::ChartFile};

/// Templates of a chart, parsed, with the files that they were parsed from.
#[derive(Default)]
pub(crate) struct TemplateCache {
    last: Mutex<Option<Parsed>>,
    parser: Mutex<Option<BackgroundParser>>,
    /// Whether a rendering by two threads has found that templates change what they share.
    pub(super) needs_order: AtomicBool,
}

struct Parsed {
    key: Vec<(String, usize)>,
    set: Arc<TemplateSet>,
}

impl std::fmt::Debug for TemplateCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemplateCache").finish_non_exhaustive()
    }
}

impl TemplateCache {
    /// An empty cache that makes use of templates which are being parsed.
    pub(crate) fn with_parser(parser: BackgroundParser) -> Self {
        Self { parser: Mutex::new(Some(parser)), ..Self::default() }
    }

    /// The parsed templates, given by full name and file, from the last rendering if it had the same files
    /// under the same names.
    pub(super) fn parse(
        &self,
        templates: &[(&str, &ChartFile)],
        options: &RenderOptions,
    ) -> Result<Arc<TemplateSet>, HelmError> {
        let key: Vec<_> = templates
            .iter()
            .map(|(name, file)| Ok(((*name).to_owned(), file.data()?.as_ptr() as usize)))
            .collect::<Result<_, HelmError>>()?;
        let mut cached = self.last.lock();
        if let Some(parsed) = cached.as_ref().filter(|parsed| parsed.key == key) {
            return Ok(parsed.set.clone());
        }
        let missing = if options.strict { MissingKey::Error } else { MissingKey::Zero };
        let mut set = TemplateSet::new(functions::table()).with_missing_key(missing).with_root_name(ROOT);
        let mut ahead = self.parsed_ahead(&key);
        let texts: Vec<_> = templates
            .iter()
            .map(|(name, file)| {
                let content = match ahead.remove(&(file.data()?.as_ptr() as usize)) {
                    Some(parsed) => TextContent::Parsed(parsed),
                    None => TextContent::Unparsed(file.text()?),
                };
                Ok(Text::new(name, content))
            })
            .collect::<Result<_, HelmError>>()?;
        set.parse_all(&texts).map_err(|error| {
            HelmError::Template(TemplateError {
                message: errors::parse_error(&error.to_string()),
                line: error.line,
                column: 0,
                template: error.name,
                is_syntax: true,
            })
        })?;
        let set = Arc::new(set);
        if !options.strict {
            *cached = Some(Parsed { key, set: set.clone() });
        }
        Ok(set)
    }

    fn parsed_ahead(&self, key: &[(String, usize)]) -> ParsedTemplates {
        let parser = self.parser.lock().take();
        let Some(parser) = parser else { return ParsedTemplates::default() };
        let wanted: FxHashSet<usize> = key.iter().map(|(_, address)| *address).collect();
        parser.finish(|address| wanted.contains(&address))
    }
}
