//! Events into node trees, with go-yaml v3's distribution of comments over keys and values.

use std::collections::HashSet;

use smol_str::SmolStr;
use tiphys_value::Budget;

use crate::{
    Comments, Content, Document, Error, ErrorKind, Event, EventKind, Events, Node, Profile, Properties, Span,
    Style, resolve::resolve,
};

/// What a node takes in the list that it stands in, which has room for more, in bytes.
const NODE_BYTES: u64 = 3 * size_of::<Node>() as u64 / 2;

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// Reads documents one after the other.
pub(crate) struct Composer<'a> {
    events: Events<'a>,
    profile: Profile,
    budget: &'a Budget,
    /// Anchors that an alias may name. go-yaml v3 keeps them from document to document.
    anchors: HashSet<&'a str>,
}

/// A collection that is still open.
struct Frame {
    node: Node,
    pairs: Vec<(Node, Node)>,
    items: Vec<Node>,
    key: Option<Node>,
    is_mapping: bool,
}

impl<'a> Composer<'a> {
    pub(crate) fn new(text: &'a str, profile: Profile, budget: &'a Budget) -> Self {
        Self { events: Events::new(text, profile), profile, budget, anchors: HashSet::new() }
    }

    /// The next document; `None` at the end of the stream.
    pub(crate) fn next_document(&mut self) -> Result<Option<Document>, Error> {
        let mut document =
            Document { root: Node::null(), head_comment: String::new(), foot_comment: String::new() };
        loop {
            let Some(event) = self.events.next_event()? else { return Ok(None) };
            match event.kind {
                EventKind::StreamEnd => return Ok(None),
                EventKind::DocumentStart => {
                    document.head_comment = event.comments.map_or_else(String::new, |c| c.head);
                    break;
                }
                _ => {}
            }
        }
        if self.profile == Profile::Go2 {
            self.anchors.clear();
        }
        document.root = self.root()?;
        if let Some(Event { kind: EventKind::DocumentEnd, comments: Some(comments), .. }) =
            self.events.next_event()?
        {
            document.foot_comment = comments.foot;
        }
        Ok(Some(document))
    }

    fn root(&mut self) -> Result<Node, Error> {
        let mut open: Vec<Frame> = Vec::new();
        loop {
            let Some(event) = self.events.next_event()? else {
                return Err(Error::new(
                    ErrorKind::Syntax,
                    "yaml: unknown problem parsing YAML content".into(),
                ));
            };
            let span = event.span;
            self.count(&event)?;
            let comments = event.comments;
            let done = match event.kind {
                EventKind::Scalar { value, style, properties } => {
                    let mut node = self.scalar(&value, style, properties.as_deref());
                    node.comments = comments;
                    node.span = span;
                    node
                }
                EventKind::Alias(name) => {
                    if !self.anchors.contains(name) {
                        let message = format!("yaml: unknown anchor '{name}' referenced");
                        return Err(Error::new(ErrorKind::Syntax, message).located_at(span.start));
                    }
                    let mut node = Node::alias(name);
                    node.comments = comments;
                    node.span = span;
                    node
                }
                EventKind::MappingStart(properties) => {
                    open.push(self.frame(true, &properties, span, comments));
                    continue;
                }
                EventKind::SequenceStart(properties) => {
                    open.push(self.frame(false, &properties, span, comments));
                    continue;
                }
                EventKind::MappingEnd | EventKind::SequenceEnd => match open.pop() {
                    Some(frame) => frame.close(comments, span),
                    None => continue,
                },
                _ => continue,
            };
            match open.last_mut() {
                Some(frame) => frame.add(done),
                None => return Ok(done),
            }
        }
    }

    /// Counts the node that an event begins: its scalar's text is a copy.
    fn count(&self, event: &Event<'_>) -> Result<(), Error> {
        let text = match &event.kind {
            EventKind::Scalar { value, .. } => value.len(),
            _ => 0,
        };
        let comments = event.comments.as_ref().map_or(0, |c| c.head.len() + c.line.len() + c.foot.len());
        self.budget
            .take(NODE_BYTES + (text + comments) as u64)
            .map_err(|fault| Error::over_budget(fault).located_at(event.span.start))
    }

    fn frame(
        &mut self,
        is_mapping: bool,
        properties: &Properties<'a>,
        span: Span,
        comments: Option<Box<Comments>>,
    ) -> Frame {
        let mut node = if is_mapping { Node::mapping(Vec::new()) } else { Node::sequence(Vec::new()) };
        node.style = properties.style;
        node.span = span;
        node.comments = comments;
        self.apply_properties(&mut node, properties);
        Frame { node, pairs: Vec::new(), items: Vec::new(), key: None, is_mapping }
    }

    fn scalar(&mut self, value: &str, style: Style, properties: Option<&Properties<'a>>) -> Node {
        let mut node = Node::scalar(SmolStr::new(value));
        node.style = style;
        if let Some(properties) = properties {
            self.apply_properties(&mut node, properties);
        }
        if node.tag.is_empty() {
            let tag = match style {
                Style::Plain if value == "<<" => "!!merge",
                Style::Plain => resolve(value, self.profile).tag(),
                _ => "!!str",
            };
            node.tag = SmolStr::new_static(tag);
        }
        node
    }

    fn apply_properties(&mut self, node: &mut Node, properties: &Properties<'a>) {
        if let Some(anchor) = properties.anchor {
            self.anchors.insert(anchor);
            node.anchor = Some(SmolStr::new(anchor));
        }
        match properties.tag.as_deref() {
            None => {}
            // go-yaml v3 reads the non-specific tag as no tag.
            Some("!") if self.profile == Profile::Go3 => {}
            Some(tag) => {
                node.explicit_tag = true;
                node.tag = match tag.strip_prefix(TAG_PREFIX) {
                    Some(short) => SmolStr::from(format!("!!{short}")),
                    None => SmolStr::new(tag),
                };
            }
        }
    }
}

impl Frame {
    fn add(&mut self, mut child: Node) {
        if !self.is_mapping {
            self.items.push(child);
            return;
        }
        let Some(mut key) = self.key.take() else {
            if self.node.style != Style::Flow && !child.foot().is_empty() && !self.pairs.is_empty() {
                // Dedented: it is about what came before.
                let foot = child.take_foot();
                if let Some((prior, _)) = self.pairs.last_mut() {
                    prior.comments_mut().foot = foot;
                }
            }
            self.key = Some(child);
            return;
        };
        if key.foot().is_empty() && !child.foot().is_empty() {
            key.comments_mut().foot = child.take_foot();
        }
        self.pairs.push((key, child));
    }

    /// The finished node. The comments of its end replace those of its start.
    fn close(mut self, comments: Option<Box<Comments>>, end: Span) -> Node {
        let (line, foot) = comments.map_or_else(Default::default, |c| (c.line, c.foot));
        if self.node.comments.is_some() || !line.is_empty() || !foot.is_empty() {
            let own = self.node.comments_mut();
            own.line = line;
            own.foot = foot;
        }
        let block = self.node.style != Style::Flow;
        if block && self.is_mapping && !self.node.foot().is_empty() && !self.pairs.is_empty() {
            let foot = self.node.take_foot();
            if let Some((last, _)) = self.pairs.last_mut() {
                last.comments_mut().foot = foot;
            }
        }
        let last_child = match self.is_mapping {
            true => self.pairs.last().map(|(_, value)| value.span.end),
            false => self.items.last().map(|item| item.span.end),
        };
        self.node.span.end = match last_child {
            Some(last) if block => last,
            _ if block => self.node.span.start,
            _ => end.end,
        };
        self.node.content =
            if self.is_mapping { Content::Mapping(self.pairs) } else { Content::Sequence(self.items) };
        self.node
    }
}
