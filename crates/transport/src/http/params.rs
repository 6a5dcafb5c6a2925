//! Parameters of the URL: each is read by name, what is left over is a mistake.

use std::ops::RangeInclusive;

use axum::{extract::Query, http::Uri};
use taffrail_mcp_core::{Id, IdKind, Seq, Start};

use super::{code::Code, cursor, problem::Problem};

/// The parameters of a request that were not read yet.
#[derive(Debug)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Params {
    /// Reads the query of a URL.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(Self { pairs: Vec::new(), known: Vec::new() });
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|error| {
            Problem::new(Code::BadParameter, format!("the query of the URL cannot be read: {error}"))
        })?;
        Ok(Self { pairs, known: Vec::new() })
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        self.known.push(name);
        let Some(at) = self.pairs.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, value) = self.pairs.swap_remove(at);
        if self.pairs.iter().any(|(given, _)| given == name) {
            return Err(Problem::parameter(name, format!("{name} is given more than once: give it once")));
        }
        Ok(Some(value))
    }

    /// An integer in a range.
    pub(crate) fn number(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        // `parse` would take a plus sign.
        let number = text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        number.filter(|number| range.contains(number)).map(Some).ok_or_else(|| {
            let (least, most) = range.into_inner();
            Problem::parameter(name, format!("{name} is {}: give an integer from {least} to {most}", shown(&text)))
        })
    }

    /// Words, separated by commas.
    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<String>, Problem> {
        let text = self.text(name)?.unwrap_or_default();
        Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
    }

    /// One of a few words.
    pub(crate) fn word(&mut self, name: &'static str, words: &[&str]) -> Result<Option<String>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if words.contains(&text.as_str()) {
            return Ok(Some(text));
        }
        Err(Problem::parameter(name, format!("{name} is {}: give one of {}", shown(&text), words.join(", "))))
    }

    /// A cursor: a position, from 0 on.
    pub(crate) fn position(&mut self, name: &'static str) -> Result<Option<Seq>, Problem> {
        self.text(name)?.map(|text| position(name, &text)).transpose()
    }

    /// Where a reader begins: a position, or `live` for what is written from now on.
    pub(crate) fn start(&mut self, name: &'static str) -> Result<Option<Start>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        cursor::start(text.as_bytes()).map(Some).map_err(|error| error.problem(name))
    }

    /// An id.
    pub(crate) fn id<K: IdKind>(&mut self, name: &'static str) -> Result<Option<Id<K>>, Problem> {
        self.text(name)?.map(|text| id(name, &text)).transpose()
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        let Self { pairs, known } = self;
        let Some((name, _)) = pairs.first() else { return Ok(()) };
        let there = match known.as_slice() {
            [] => "this takes none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        let problem = Problem::new(Code::BadParameter, format!("there is no parameter {}: {there}", shown(name)));
        Err(problem.with("parameter", shortened(name)))
    }
}

/// Reads a cursor: a position, from 0 on. `name` is where it stands.
pub(crate) fn position(name: &'static str, text: &str) -> Result<Seq, Problem> {
    cursor::position(text.as_bytes()).map_err(|error| error.problem(name))
}

/// Reads an id. `name` is where it stands.
pub(crate) fn id<K: IdKind>(name: &'static str, text: &str) -> Result<Id<K>, Problem> {
    Id::new(text).map_err(|error| Problem::new(Code::BadId, format!("{name}: {error}")).with("parameter", name))
}

/// What was given, quoted, and not at any length.
pub(crate) fn shown(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::of(&format!("/x?{query}").parse().unwrap()).unwrap()
    }

    fn detail(result: Result<impl std::fmt::Debug, Problem>) -> String {
        let problem = result.unwrap_err();
        serde_json::to_value(&problem).unwrap()["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn what_is_right_is_read_once() {
        let mut params = params("after=7&limit=3&types=log%2Cnote,&grep=a%20b&live=live");
        assert_eq!(params.position("after").unwrap(), Some(Seq(7)));
        assert_eq!(params.number("limit", 1..=5).unwrap(), Some(3));
        assert_eq!(params.list("types").unwrap(), ["log", "note"]);
        assert_eq!(params.text("grep").unwrap().as_deref(), Some("a b"));
        assert_eq!(params.start("live").unwrap(), Some(Start::Live));
        assert_eq!(params.text("other").unwrap(), None);
        params.finish().unwrap();
    }

    #[test]
    fn a_mistake_is_named_with_what_would_be_right() {
        for bad in ["0", "6", "-1", "+1", "1.0", "", "x", "99999999999999999999"] {
            let told = detail(params(&format!("limit={bad}").replace('+', "%2B")).number("limit", 1..=5));
            assert_eq!(told, format!("limit is {bad:?}: give an integer from 1 to 5"));
        }
        assert!(
            detail(params("after=-1").position("after")).starts_with("after: \"-1\" is not a cursor: give an integer")
        );
        assert!(detail(params("after=%2B1").start("after")).contains("is not a cursor"));
        assert!(detail(params("a=1&a=2").text("a")).contains("more than once"));
        assert!(detail(params("s=x").word("s", &["a", "b"])).ends_with("give one of a, b"));
        let mut params = params("limitt=3");
        params.number("limit", 1..=5).unwrap();
        assert_eq!(detail(params.finish()), "there is no parameter \"limitt\": there are limit");
    }
}
