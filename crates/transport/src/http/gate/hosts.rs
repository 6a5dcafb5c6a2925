//! Which names this server answers to, and pages of which origins may ask.
//!
//! A page of another site can make a browser send requests here, and a name that its owner points at 127.0.0.1 can make
//! them look like their own (DNS rebinding). Neither can choose the `Host` and `Origin` that the browser sends.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

use super::Ends;
use crate::http::{HttpConfig, code::Code, params::shown, problem::Problem};

/// Names of one's own machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Who may be meant, and who may ask.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Besides the loopback names and the address that was connected to.
    names: Vec<Name>,
    /// Besides the server's own.
    origins: Vec<String>,
    /// The proxy before us tells who connected.
    forwarded: bool,
}

/// A name, for one port or any.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    fn of(authority: &Authority) -> Self {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Self { host, port: authority.port_u16() }
    }

    /// The same name without the port that its scheme has anyway.
    fn plain(self, scheme: &str) -> Self {
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        Self { port: self.port.filter(|port| Some(*port) != usual), ..self }
    }
}

impl Hosts {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let public = config.public_url.iter().filter_map(|url| url.authority().cloned());
        let named = config.allowed_hosts.iter().cloned().chain(public);
        let public = config.public_url.iter().filter_map(origin_of);
        let origins = config.allowed_origins.iter().filter_map(origin_of).chain(public).collect();
        Self { names: named.map(|name| Name::of(&name)).collect(), origins, forwarded: config.forwarded_for }
    }

    /// Who asks: the other end of the connection, or whom the proxy there names.
    pub(super) fn client(&self, headers: &HeaderMap, ends: Ends) -> IpAddr {
        let connected = ends.remote.ip().to_canonical();
        if !self.forwarded {
            return connected;
        }
        // The last one is what our own proxy added; those before it are what the client claims.
        let told = headers.get_all("x-forwarded-for").iter().next_back();
        let last = told.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
        last.map_or(connected, |ip| ip.to_canonical())
    }

    /// Returns the name by which we were called, when it is one of ours.
    pub(super) fn check_host(&self, uri: &Uri, headers: &HeaderMap, ends: Ends) -> Result<Authority, Problem> {
        let given = headers.get(header::HOST).map(|host| host.as_bytes());
        let authority = match (given, uri.authority()) {
            (Some(host), _) => Authority::try_from(host).ok(),
            // HTTP/2 has it in the URL.
            (None, authority) => authority.cloned(),
        };
        let refused = |what: String| {
            let detail = format!(
                "{what}: this server answers to localhost, to its own address and to names given with --allowed-host or \
                 --public-url"
            );
            Problem::new(Code::UnknownHost, detail)
        };
        let Some(authority) = authority else {
            let text = given.map(|host| String::from_utf8_lossy(host).into_owned());
            return Err(refused(
                text.map_or("there is no Host".to_owned(), |text| format!("the Host is {}", shown(&text))),
            ));
        };
        let name = Name::of(&authority);
        let ours = LOOPBACK.contains(&name.host.as_str())
            || name.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical() == ends.local.ip().to_canonical())
            || self
                .names
                .iter()
                .any(|known| known.host == name.host && known.port.is_none_or(|port| name.port == Some(port)));
        if ours { Ok(authority) } else { Err(refused(format!("the Host is {}", shown(authority.as_str())))) }
    }

    /// Refuses what a page of another origin asks; gives the origin when it is one that was allowed. `host` is the name
    /// by which we were called.
    pub(super) fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<Option<HeaderValue>, Problem> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        let text = String::from_utf8_lossy(origin.as_bytes());
        let parsed = text.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some() && uri.authority().is_some());
        if parsed.as_ref().is_some_and(|uri| is_at(uri, host)) {
            return Ok(None);
        }
        if parsed.as_ref().and_then(origin_of).is_some_and(|origin| self.origins.contains(&origin)) {
            return Ok(Some(origin.clone()));
        }
        let detail = format!(
            "the Origin is {}: pages of this server may ask, and those of origins given with --allowed-origin or --public-url",
            shown(&text)
        );
        Err(Problem::new(Code::UnknownOrigin, detail))
    }
}

/// Whether a URL is at a host; ports that schemes have anyway may be left out.
fn is_at(uri: &Uri, host: &Authority) -> bool {
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    Name::of(authority).plain(scheme) == Name::of(host).plain(scheme)
}

/// `https://name:port`, lower case, without a port that the scheme has anyway.
fn origin_of(uri: &Uri) -> Option<String> {
    let (scheme, name) = (uri.scheme_str()?, Name::of(uri.authority()?).plain(uri.scheme_str()?));
    let port = name.port.map_or(String::new(), |port| format!(":{port}"));
    Some(format!("{scheme}://{}{port}", name.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(allowed: &[&str], origins: &[&str], public: Option<&str>) -> Hosts {
        Hosts::new(&HttpConfig {
            allowed_hosts: allowed.iter().map(|host| host.parse().unwrap()).collect(),
            allowed_origins: origins.iter().map(|origin| origin.parse().unwrap()).collect(),
            public_url: public.map(|url| url.parse().unwrap()),
            ..HttpConfig::default()
        })
    }

    fn ends() -> Ends {
        Ends { remote: "192.0.2.9:40000".parse().unwrap(), local: "192.0.2.1:7433".parse().unwrap() }
    }

    fn host(hosts: &Hosts, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        hosts.check_host(&"/".parse().unwrap(), &headers, ends()).is_ok()
    }

    fn origin(hosts: &Hosts, host: &str, origin: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::ORIGIN, origin.parse().unwrap())]);
        hosts.check_origin(&headers, &host.parse().unwrap()).is_ok()
    }

    #[test]
    fn hosts_that_are_ours() {
        let hosts = hosts(&["log.example", "one.example:8443"], &[], Some("https://public.example/"));
        for ours in [
            "localhost:7433",
            "LOCALHOST",
            "127.0.0.1:1",
            "[::1]:7433",
            "192.0.2.1:7433",
            "192.0.2.1",
            "log.example",
            "log.example:99",
            "one.example:8443",
            "public.example",
        ] {
            assert!(host(&hosts, ours), "{ours}");
        }
        for other in [
            "evil.example",
            "192.0.2.2:7433",
            "one.example",
            "one.example:443",
            "localhost.evil.example",
            "127.0.0.2",
            "",
            "a b",
        ] {
            assert!(!host(&hosts, other), "{other}");
        }
        let nothing = hosts.check_host(&"/".parse().unwrap(), &HeaderMap::new(), ends());
        assert_eq!(nothing.unwrap_err().code(), Code::UnknownHost);
        let h2 = hosts.check_host(&"http://localhost:7433/x".parse().unwrap(), &HeaderMap::new(), ends());
        assert!(h2.is_ok());
    }

    #[test]
    fn origins_that_may_ask() {
        let hosts = hosts(&[], &["https://other.example", "http://dev.example:3000"], Some("https://public.example"));
        for (name, yes) in [
            ("localhost:7433", "http://localhost:7433"),
            ("log.example", "https://log.example"),
            ("log.example:443", "https://log.example"),
            ("x:1", "https://other.example"),
            ("x:1", "https://OTHER.example:443"),
            ("x:1", "http://dev.example:3000"),
            ("x:1", "https://public.example"),
        ] {
            assert!(origin(&hosts, name, yes), "{name} {yes}");
        }
        for (name, no) in [
            ("localhost:7433", "http://localhost:3000"),
            ("localhost:7433", "http://127.0.0.1:7433"),
            ("localhost:7433", "null"),
            ("x:1", "http://other.example"),
            ("x:1", "http://dev.example"),
            ("x:1", "other.example"),
            ("x:1", ""),
        ] {
            assert!(!origin(&hosts, name, no), "{name} {no}");
        }
    }

    #[test]
    fn who_asks_is_whom_our_own_proxy_names() {
        let headers =
            HeaderMap::from_iter([("x-forwarded-for".parse().unwrap(), "203.0.113.5, 198.51.100.7".parse().unwrap())]);
        let direct = hosts(&[], &[], None);
        assert_eq!(direct.client(&headers, ends()).to_string(), "192.0.2.9");
        let behind = Hosts::new(&HttpConfig { forwarded_for: true, ..HttpConfig::default() });
        assert_eq!(behind.client(&headers, ends()).to_string(), "198.51.100.7");
        assert_eq!(behind.client(&HeaderMap::new(), ends()).to_string(), "192.0.2.9");
    }
}
