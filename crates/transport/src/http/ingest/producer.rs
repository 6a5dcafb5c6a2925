//! The header `Taffrail-Producer`: whose events a body has, and the number of its first.

use std::num::NonZeroU64;

use axum::http::HeaderMap;
use taffrail_mcp_core::ProducerId;
use taffrail_relay::Numbered;

use crate::http::{code::Code, params::shown, problem::Problem};

/// The header's name.
pub(crate) const HEADER: &str = "taffrail-producer";

/// Reads the header, when it is there.
///
/// # Errors
///
/// `bad-producer` when it is not `<id>:<number>`, or is there twice.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Numbered>, Problem> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(Problem::new(Code::BadProducer, "Taffrail-Producer is there twice: send it once"));
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let bad = |what: &str| {
        let detail = format!(
            "Taffrail-Producer is {}: {what}; give `<id>:<number of the first event>`, such as `worker-1:1`",
            shown(&text)
        );
        Problem::new(Code::BadProducer, detail)
    };
    let (id, first) = text.trim().rsplit_once(':').ok_or_else(|| bad("there is no colon"))?;
    let producer = ProducerId::new(id).map_err(|error| bad(&error.to_string()))?;
    let digits = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    let number = first.parse::<NonZeroU64>().ok().filter(|_| digits);
    let first = number.ok_or_else(|| bad("the number is an integer from 1 on"))?;
    Ok(Some(Numbered { producer, first }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn an_id_and_a_number() {
        assert_eq!(read(&headers(&[])).unwrap(), None);
        let numbered = read(&headers(&["worker-1.a:42"])).unwrap().unwrap();
        assert_eq!((numbered.producer.as_str(), numbered.first.get()), ("worker-1.a", 42));
    }

    #[test]
    fn anything_else_is_told() {
        for bad in ["", "a", "a:", ":1", "a:0", "a:-1", "a:+1", "a:1.5", "a b:1", "a:99999999999999999999", "a:b:1"] {
            assert_eq!(read(&headers(&[bad])).unwrap_err().code(), Code::BadProducer, "{bad}");
        }
        assert_eq!(read(&headers(&["a:1", "a:2"])).unwrap_err().code(), Code::BadProducer);
    }
}
