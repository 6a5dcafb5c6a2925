//! YAML text into a tree of nodes that know where they stand.
//!
//! Built from the parser's events rather than a ready-made value, for three reasons: ready-made maps hide duplicate
//! keys, forget how a scalar was written (`1.10` is a version, not a number), and follow aliases without a bound.

use std::{collections::HashMap, rc::Rc};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::Value;

use super::{
    diagnostic::{Position, Report},
    scalar,
};

/// Largest source, in bytes.
pub(crate) const MAX_SOURCE_BYTES: usize = 1024 * 1024;
/// Deepest nesting, aliases followed.
pub(crate) const MAX_DEPTH: usize = 64;
/// Most nodes, aliases followed.
pub(crate) const MAX_NODES: usize = 100_000;

/// One node. Aliases share their node, so a tree costs what its text costs.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) kind: NodeKind,
    /// Nodes in it, itself included, aliases followed.
    nodes: usize,
    /// Levels in it.
    height: usize,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A scalar: its JSON value and the text it was written with.
    Scalar { value: Value, text: String },
    /// A sequence.
    List(Vec<Rc<Node>>),
    /// A mapping: keys are strings and unique.
    Map(Vec<(Key, Rc<Node>)>),
}

/// A key of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) at: Position,
    pub(crate) text: String,
}

impl Node {
    /// What it is, in words for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.kind {
            NodeKind::Scalar { value: Value::Null, .. } => "nothing",
            NodeKind::Scalar { value: Value::Bool(_), .. } => "a boolean",
            NodeKind::Scalar { value: Value::Number(_), .. } => "a number",
            NodeKind::Scalar { .. } => "a string",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a mapping",
        }
    }

    /// The same data as JSON.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar { value, .. } => value.clone(),
            NodeKind::List(items) => items.iter().map(|item| item.to_json()).collect(),
            NodeKind::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.text.clone(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Reads one document. `None` when there is none, or when it cannot be read on; `report` says why.
pub(crate) fn read(source: &str, report: &mut Report) -> Option<Rc<Node>> {
    if source.len() > MAX_SOURCE_BYTES {
        report.error(Position::START, format!("file is {} bytes long; the limit is {MAX_SOURCE_BYTES}", source.len()));
        return None;
    }
    let mut builder = Builder { report, open: Vec::new(), anchors: HashMap::new(), root: None, documents: 0 };
    let mut parser = Parser::new_from_str(source);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => builder.event(event, span)?,
            Err(error) => {
                builder.syntax(&error);
                return None;
            }
        }
    }
    if builder.root.is_none() {
        builder.report.error_help(Position::START, "file is empty", "a playbook begins with `playbook: NAME`");
    }
    builder.root
}

/// A collection whose end has not come yet.
struct Open {
    at: Position,
    anchor: usize,
    items: Items,
    nodes: usize,
    height: usize,
}

enum Items {
    List(Vec<Rc<Node>>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    entries: Vec<(Key, Rc<Node>)>,
    /// Keys so far and their lines.
    seen: HashMap<String, usize>,
    /// The key whose value comes next; the inner `None` is a key that was no good.
    pending: Option<Option<Key>>,
}

struct Builder<'r> {
    report: &'r mut Report,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
    root: Option<Rc<Node>>,
    documents: usize,
}

impl Builder<'_> {
    /// Takes one event; `None` ends the reading.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = position(span);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Some(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.report.error_help(
                        at,
                        "file has more than one document",
                        "a file holds one playbook; put the next one in a file of its own",
                    );
                    return None;
                }
                Some(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(at, text.into_owned(), style, tag.as_deref());
                self.close(node, anchor)
            }
            Event::SequenceStart(anchor, tag) => self.start(at, anchor, tag.as_deref(), "seq", Items::List(Vec::new())),
            Event::MappingStart(anchor, tag) => {
                self.start(at, anchor, tag.as_deref(), "map", Items::Map(OpenMap::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop()?;
                let kind = match open.items {
                    Items::List(items) => NodeKind::List(items),
                    Items::Map(map) => NodeKind::Map(map.entries),
                };
                let node = Node { at: open.at, kind, nodes: open.nodes + 1, height: open.height + 1 };
                self.close(node, open.anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.put(node, at),
                None => {
                    self.report.error(at, "alias to something that is not complete yet: it would contain itself");
                    None
                }
            },
        }
    }

    fn start(&mut self, at: Position, anchor: usize, tag: Option<&Tag>, own: &str, items: Items) -> Option<()> {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == own)
        {
            self.bad_tag(at, tag);
        }
        if self.open.len() >= MAX_DEPTH {
            self.too_deep(at);
            return None;
        }
        self.open.push(Open { at, anchor, items, nodes: 0, height: 0 });
        Some(())
    }

    fn scalar(&mut self, at: Position, text: String, style: ScalarStyle, tag: Option<&Tag>) -> Node {
        let value = match tag {
            None if style == ScalarStyle::Plain => scalar::resolve(&text),
            None => Some(Value::String(text.clone())),
            Some(tag) => match scalar::resolve_tagged(&text, tag) {
                Some(value) => Some(value),
                None => {
                    self.bad_tag(at, tag);
                    Some(Value::Null)
                }
            },
        };
        let value = value.unwrap_or_else(|| {
            self.report.error_help(at, format!("`{text}` is not a finite number"), "quote it if it is text");
            Value::Null
        });
        Node { at, kind: NodeKind::Scalar { value, text }, nodes: 1, height: 1 }
    }

    fn close(&mut self, node: Node, anchor: usize) -> Option<()> {
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let at = node.at;
        self.put(node, at)
    }

    /// Puts a finished node where it belongs; `at` is where it is used, which for an alias is not where it stands.
    fn put(&mut self, node: Rc<Node>, at: Position) -> Option<()> {
        let depth = self.open.len() + node.height;
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        parent.nodes = parent.nodes.saturating_add(node.nodes);
        parent.height = parent.height.max(node.height);
        match &mut parent.items {
            Items::List(items) => items.push(Rc::clone(&node)),
            Items::Map(map) => match map.pending.take() {
                None => map.pending = Some(key(&node, at, &mut map.seen, self.report)),
                Some(None) => {}
                Some(Some(key)) => map.entries.push((key, Rc::clone(&node))),
            },
        }
        if depth > MAX_DEPTH {
            self.too_deep(at);
            return None;
        }
        let nodes: usize = self.open.iter().map(|open| open.nodes).fold(0, usize::saturating_add);
        if nodes > MAX_NODES {
            self.report.error(at, format!("file has more than {MAX_NODES} values, aliases followed"));
            return None;
        }
        Some(())
    }

    fn too_deep(&mut self, at: Position) {
        self.report.error(at, format!("nesting is deeper than {MAX_DEPTH} levels"));
    }

    fn bad_tag(&mut self, at: Position, tag: &Tag) {
        self.report.error_help(at, format!("tag `{tag}` does not fit here"), "playbooks need no tags: leave it out");
    }

    fn syntax(&mut self, error: &ScanError) {
        let marker = error.marker();
        let at = Position { line: marker.line().max(1), column: marker.col() + 1 };
        self.report.error(at, format!("not YAML: {}", error.info()));
    }
}

/// Takes a node as the key of a mapping; `None` when it is no good.
fn key(node: &Node, at: Position, seen: &mut HashMap<String, usize>, report: &mut Report) -> Option<Key> {
    let NodeKind::Scalar { value: Value::String(text), .. } = &node.kind else {
        let what = match &node.kind {
            NodeKind::Scalar { text, .. } if !text.is_empty() => format!("`{text}` is {}", node.describe()),
            _ => format!("this is {}", node.describe()),
        };
        report.error_help(at, format!("a key must be a string; {what}"), "put quotes around it");
        return None;
    };
    if let Some(first) = seen.get(text) {
        report.error_help(
            at,
            format!("key `{text}` is here twice"),
            format!("the first one is on line {}; keep one of them", first),
        );
        return None;
    }
    seen.insert(text.clone(), at.line);
    Some(Key { at, text: text.clone() })
}

fn position(span: Span) -> Position {
    Position { line: span.start.line().max(1), column: span.start.col() + 1 }
}
