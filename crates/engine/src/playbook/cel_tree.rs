//! Reading a CEL expression tree: how deep it is, what it refers to; and values into CEL.

use std::collections::HashMap;

use cel::{
    IdedExpr, Value as CelValue,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
    objects::Key,
};
use serde_json::Value;

/// A use of a variable: `inputs`, `inputs.version`, or `has(inputs.version)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The variable.
    pub(crate) root: String,
    /// The member read from it at once, by `.member` or `["member"]`.
    pub(crate) member: Option<String>,
    /// Only asked for, by `has()`.
    pub(crate) tested: bool,
}

/// How much an expression may recurse and loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) depth: usize,
    pub(crate) nested_loops: usize,
}

/// Deepest nesting of brackets in the text, quotes ignored: a cheap first look that keeps absurd texts from the parser.
pub(crate) fn bracket_depth(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Measures a tree. Not recursive, so that it may look at any tree.
pub(crate) fn shape(root: &IdedExpr) -> Shape {
    let mut shape = Shape::default();
    let mut pending = vec![(root, 1_usize, 0_usize)];
    while let Some((node, depth, loops)) = pending.pop() {
        let loops = loops + usize::from(matches!(node.expr, Expr::Comprehension(_)));
        shape.depth = shape.depth.max(depth);
        shape.nested_loops = shape.nested_loops.max(loops);
        children(node, &mut |child| pending.push((child, depth + 1, loops)));
    }
    shape
}

/// The variables and named functions of a tree whose depth is known to be small.
pub(crate) fn references(root: &IdedExpr) -> (Vec<Reference>, Vec<String>) {
    let mut found = Found::default();
    found.walk(root, &mut Vec::new());
    (found.references, found.functions)
}

#[derive(Default)]
struct Found {
    references: Vec<Reference>,
    functions: Vec<String>,
}

impl Found {
    /// `bound` holds the loop variables of the comprehensions around `node`.
    fn walk<'a>(&mut self, node: &'a IdedExpr, bound: &mut Vec<&'a str>) {
        match &node.expr {
            Expr::Ident(name) => self.refer(name, None, false, bound),
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) => self.refer(name, Some(&select.field), select.test, bound),
                _ => self.walk(&select.operand, bound),
            },
            Expr::Call(call) => {
                if let (
                    operators::INDEX,
                    [
                        IdedExpr { expr: Expr::Ident(name), .. },
                        IdedExpr { expr: Expr::Literal(LiteralValue::String(member)), .. },
                    ],
                ) = (call.func_name.as_str(), call.args.as_slice())
                {
                    self.refer(name, Some(member.inner()), false, bound);
                    return;
                }
                if call.func_name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    self.functions.push(call.func_name.clone());
                }
                children(node, &mut |child| self.walk(child, bound));
            }
            Expr::Comprehension(comprehension) => self.walk_loop(comprehension, bound),
            _ => children(node, &mut |child| self.walk(child, bound)),
        }
    }

    fn walk_loop<'a>(&mut self, comprehension: &'a ComprehensionExpr, bound: &mut Vec<&'a str>) {
        self.walk(&comprehension.iter_range, bound);
        self.walk(&comprehension.accu_init, bound);
        let outer = bound.len();
        bound.push(&comprehension.iter_var);
        bound.extend(comprehension.iter_var2.as_deref());
        bound.push(&comprehension.accu_var);
        for part in [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result] {
            self.walk(part, bound);
        }
        bound.truncate(outer);
    }

    fn refer(&mut self, name: &str, member: Option<&str>, tested: bool, bound: &[&str]) {
        // A leading dot says "not a loop variable".
        let root = name.strip_prefix('.').unwrap_or(name);
        if root.starts_with('@') || (root == name && bound.contains(&name)) {
            return;
        }
        let reference = Reference { root: root.to_owned(), member: member.map(str::to_owned), tested };
        if !self.references.contains(&reference) {
            self.references.push(reference);
        }
    }
}

fn children<'a>(node: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match &node.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter().for_each(|target| visit(target));
            call.args.iter().for_each(visit);
        }
        Expr::Comprehension(parts) => {
            for part in [&parts.iter_range, &parts.accu_init, &parts.loop_cond, &parts.loop_step, &parts.result] {
                visit(part);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Select(select) => visit(&select.operand),
        Expr::Map(map) => map.entries.iter().for_each(|entry| entry_children(&entry.expr, visit)),
        Expr::Struct(parts) => parts.entries.iter().for_each(|entry| entry_children(&entry.expr, visit)),
    }
}

fn entry_children<'a>(entry: &'a EntryExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => visit(&field.value),
        EntryExpr::MapEntry(entry) => {
            visit(&entry.key);
            visit(&entry.value);
        }
    }
}

/// JSON into CEL. Whole numbers are always CEL's `int` where they fit: through serde they would be `uint`, and
/// `attempt + 1` would have no meaning.
pub(crate) fn to_cel(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(answer) => CelValue::Bool(*answer),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => CelValue::Int(whole),
            (None, Some(large)) => CelValue::UInt(large),
            (None, None) => number.as_f64().map_or(CelValue::Null, CelValue::Float),
        },
        Value::String(text) => CelValue::String(text.clone().into()),
        Value::Array(items) => CelValue::List(items.iter().map(to_cel).collect::<Vec<_>>().into()),
        Value::Object(map) => to_cel_map(map.iter().map(|(key, value)| (key.as_str(), value))),
    }
}

/// An object into CEL.
pub(crate) fn to_cel_map<'a>(entries: impl Iterator<Item = (&'a str, &'a Value)>) -> CelValue {
    let map: HashMap<Key, CelValue> =
        entries.map(|(key, value)| (Key::String(key.to_owned().into()), to_cel(value))).collect();
    CelValue::Map(cel::objects::Map { map: map.into() })
}
