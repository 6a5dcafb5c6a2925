//! Request states that only this server can make, for one request of one caller.
//!
//! A sealed state is base64url of: version, expiry, nonce, payload, tag. The tag is HMAC-SHA256 over all before it and over
//! what it is bound to, which is not in it. It is signed, not encrypted: what the client may not read does not belong
//! there.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// So that a tag made for something else, with the same key, is none here.
const DOMAIN: &[u8] = b"taffrail/mrtr/request-state/1";
const VERSION: u8 = 1;
const NONCE: usize = 16;
const TAG: usize = 32;
const HEAD: usize = 1 + 8 + NONCE;

/// The key that request states are sealed with: 32 bytes or more, the same on every server that may get the retry.
#[derive(Clone)]
pub struct StateKey(Hmac<Sha256>);

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A guessable key seals nothing.
    #[error("a key of {bytes} bytes is too short; use at least 32 random bytes")]
    TooShort {
        /// The length that was given.
        bytes: usize,
    },
    /// The system gave no random bytes.
    #[error("no random bytes from the operating system: {what}")]
    NoRandomness {
        /// What the system said.
        what: String,
    },
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(…)")
    }
}

/// What a state is bound to.
pub(crate) struct Binding<'a> {
    pub(crate) principal: &'a str,
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: [u8; 32],
}

/// A state that was opened.
#[derive(Debug, PartialEq)]
pub(crate) struct Sealed {
    pub(crate) nonce: [u8; NONCE],
    pub(crate) expires_ms: u64,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| KeyError::NoRandomness { what: error.to_string() })?;
    Ok(bytes)
}

impl StateKey {
    /// A key that servers share.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooShort`] below 32 bytes.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        let too_short = KeyError::TooShort { bytes: secret.len() };
        if secret.len() < 32 {
            return Err(too_short);
        }
        // HMAC takes a key of any length.
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }

    /// A key of the usual length. Guessable bytes seal nothing.
    pub fn from_bytes(secret: [u8; 32]) -> Self {
        // HMAC fills a shorter key up with zeros (RFC 2104, section 2); at the length of a block nothing can fail.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&secret);
        Self(Hmac::new(&block.into()))
    }

    /// A key for this process: a retry that comes after a restart, or to another server, is refused.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoRandomness`].
    pub fn random() -> Result<Self, KeyError> {
        Self::new(&random::<32>()?)
    }

    /// Seals `payload` for `binding`, until `expires_ms` of the Unix epoch.
    pub(crate) fn seal(&self, payload: &[u8], binding: &Binding<'_>, expires_ms: u64) -> Result<String, KeyError> {
        let mut bytes = Vec::with_capacity(HEAD + payload.len() + TAG);
        bytes.push(VERSION);
        bytes.extend_from_slice(&expires_ms.to_be_bytes());
        bytes.extend_from_slice(&random::<NONCE>()?);
        bytes.extend_from_slice(payload);
        let tag = self.mac(&bytes, binding).finalize().into_bytes();
        bytes.extend_from_slice(&tag);
        Ok(BASE64.encode(bytes))
    }

    /// Opens what [`StateKey::seal`] has made. `None` for everything else, whatever is wrong with it: who forges learns
    /// nothing.
    pub(crate) fn open(&self, sealed: &str, binding: &Binding<'_>, now_ms: u64) -> Option<Sealed> {
        let bytes = BASE64.decode(sealed).ok()?;
        let (body, tag) = bytes.split_last_chunk::<TAG>()?;
        // In constant time.
        self.mac(body, binding).verify_slice(tag).ok()?;
        let (version, rest) = body.split_first()?;
        let (expires, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, payload) = rest.split_first_chunk::<NONCE>()?;
        let expires_ms = u64::from_be_bytes(*expires);
        (*version == VERSION && now_ms < expires_ms).then(|| Sealed {
            nonce: *nonce,
            expires_ms,
            payload: payload.to_vec(),
        })
    }

    fn mac(&self, body: &[u8], binding: &Binding<'_>) -> Hmac<Sha256> {
        let Binding { principal, method, name, arguments } = binding;
        let mut mac = self.0.clone();
        // With lengths, so that no two different rows of parts are the same bytes.
        for part in [DOMAIN, principal.as_bytes(), method.as_bytes(), name.as_bytes(), arguments, body] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

/// The digest of a JSON value, the same for every order of an object's members.
pub(crate) fn digest(value: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    feed(value, &mut hash);
    hash.finalize().into()
}

/// Depth is bounded where the value was read: JSON readers here refuse more than 128 levels.
fn feed(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            hash.update(b"{");
            hash.update((members.len() as u64).to_be_bytes());
            for (key, value) in members {
                text(key, hash);
                feed(value, hash);
            }
        }
        Value::Array(items) => {
            hash.update(b"[");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| feed(item, hash));
        }
        Value::String(string) => text(string, hash),
        Value::Number(number) => {
            hash.update(b"n");
            text(&number.to_string(), hash);
        }
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Null => hash.update(b"0"),
    }
}

fn text(text: &str, hash: &mut Sha256) {
    hash.update(b"\"");
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> StateKey {
        StateKey::new(&[7; 32]).unwrap()
    }

    fn binding() -> Binding<'static> {
        Binding { principal: "alice", method: "tools/call", name: "deploy", arguments: digest(&json!({"a": 1})) }
    }

    #[test]
    fn a_key_is_its_bytes_however_it_was_made() {
        let binding = binding();
        let sealed = StateKey::from_bytes([7; 32]).seal(b"x", &binding, 9).unwrap();
        assert!(StateKey::new(&[7; 32]).unwrap().open(&sealed, &binding, 1).is_some());
        assert!(StateKey::from_bytes([8; 32]).open(&sealed, &binding, 1).is_none());
    }

    #[test]
    fn what_was_sealed_opens_until_it_expires() {
        let sealed = key().seal(b"payload", &binding(), 1000).unwrap();
        let opened = key().open(&sealed, &binding(), 999).unwrap();
        assert_eq!((opened.payload.as_slice(), opened.expires_ms), (b"payload".as_slice(), 1000));
        assert_eq!(key().open(&sealed, &binding(), 1000), None);
        let again = key().seal(b"payload", &binding(), 1000).unwrap();
        assert_ne!(key().open(&again, &binding(), 0).unwrap().nonce, opened.nonce);
    }

    #[test]
    fn for_anybody_and_anything_else_it_does_not() {
        let sealed = key().seal(b"payload", &binding(), 1000).unwrap();
        let others = [
            Binding { principal: "bob", ..binding() },
            Binding { principal: "alicetools", method: "/call", ..binding() },
            Binding { method: "prompts/get", ..binding() },
            Binding { name: "destroy", ..binding() },
            Binding { arguments: digest(&json!({"a": 2})), ..binding() },
        ];
        for other in others {
            assert_eq!(key().open(&sealed, &other, 0), None);
        }
        assert_eq!(StateKey::new(&[8; 32]).unwrap().open(&sealed, &binding(), 0), None);
        assert_eq!(StateKey::random().unwrap().open(&sealed, &binding(), 0), None);
    }

    #[test]
    fn nothing_that_was_changed_opens() {
        let sealed = key().seal(b"payload", &binding(), 1000).unwrap();
        let bytes = BASE64.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(key().open(&BASE64.encode(changed), &binding(), 0), None, "byte {at}");
            assert_eq!(key().open(&BASE64.encode(&bytes[..at]), &binding(), 0), None, "cut at {at}");
        }
        for text in ["", "?", "AAAA", &format!("{sealed}A")] {
            assert_eq!(key().open(text, &binding(), 0), None);
        }
    }

    #[test]
    fn short_keys_are_refused_and_keys_are_not_shown() {
        assert_eq!(StateKey::new(&[1; 31]).unwrap_err(), KeyError::TooShort { bytes: 31 });
        assert_eq!(format!("{:?}", key()), "StateKey(…)");
    }

    #[test]
    fn digests_know_values_and_not_their_order() {
        let parse = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(parse(r#"{"a":1,"b":[true,null]}"#), parse(r#"{"b":[true,null],"a":1}"#));
        let different =
            [r#"{"a":"1"}"#, r#"{"a":1}"#, r#"{"a":[1]}"#, r#"["a",1]"#, "[]", "{}", "null", r#""""#, "0", "\"0\""];
        for (index, one) in different.iter().enumerate() {
            for other in &different[..index] {
                assert_ne!(parse(one), parse(other), "{one} {other}");
            }
        }
    }
}
