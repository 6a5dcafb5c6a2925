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
    origins: Vec<Uri>,
    /// The proxy before us tells who connected.
    forwarded: bool,
}

/// A name, for one port or any.
#[derive(Debug)]
struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    fn of(authority: &Authority) -> Option<Self> {
        Called::by(authority.as_str()).map(|called| Self { host: called.host.to_owned(), port: called.port })
    }

    fn is(&self, called: Called<'_>) -> bool {
        self.host.eq_ignore_ascii_case(called.host) && (self.port.is_none() || self.port == called.port)
    }
}

/// What somebody calls a server: a name or an address, and a port.
///
/// Looked at with every request, so it points into that. Whether the name could be one is not checked: it is one of ours
/// or it is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called<'a> {
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Called<'a> {
    fn by(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            // Addresses with colons of their own.
            Some(rest) => rest.split_once(']').map(|(host, port)| (host, port.strip_prefix(':').or(Some(port))))?,
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = port.filter(|port| !port.is_empty()).map(|port| port.parse().map_err(|_| ())).transpose().ok()?;
        Some(Self { host, port })
    }

    /// By a URL. A port that its scheme has anyway is none.
    fn by_url(uri: &'a Uri) -> Option<Self> {
        Self::by(uri.authority()?.as_str()).map(|called| called.plain(uri.scheme_str().unwrap_or_default()))
    }

    /// The same without the port that a scheme has anyway.
    fn plain(self, scheme: &str) -> Self {
        let usual = match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        Self { port: self.port.filter(|port| Some(*port) != usual), ..self }
    }

    fn is(self, other: Self) -> bool {
        self.host.eq_ignore_ascii_case(other.host) && self.port == other.port
    }
}

impl Hosts {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let public = config.public_url.iter();
        let named = config.allowed_hosts.iter().chain(public.clone().filter_map(Uri::authority));
        let names = named.filter_map(Name::of).collect();
        let origins = config.allowed_origins.iter().chain(public).cloned().collect();
        Self { names, origins, forwarded: config.forwarded_for }
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
    pub(crate) fn check_host<'a>(
        &self,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        ends: Ends,
    ) -> Result<Called<'a>, Problem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        // One in the URL counts before the header (RFC 9112, section 3.2.2; RFC 9113, section 8.3.1).
        let given = match (uri.authority(), hosts.next()) {
            (Some(authority), _) => Some(authority.as_str()),
            (None, Some(host)) => host.to_str().ok(),
            (None, None) => None,
        };
        if hosts.next().is_some() {
            let detail = "there is more than one Host header: send one".to_owned();
            return Err(Problem::new(Code::UnknownHost, detail));
        }
        if let Some(called) = given.and_then(Called::by)
            && self.is_ours(called, ends)
        {
            return Ok(called);
        }
        let what = given.map_or("there is no Host".to_owned(), |text| format!("the Host is {}", shown(text)));
        let detail = format!(
            "{what}: this server answers to localhost, to its own address and to names given with --allowed-host or \
             --public-url"
        );
        Err(Problem::new(Code::UnknownHost, detail))
    }

    fn is_ours(&self, called: Called<'_>, ends: Ends) -> bool {
        LOOPBACK.iter().any(|name| name.eq_ignore_ascii_case(called.host))
            || called.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical() == ends.local.ip().to_canonical())
            || self.names.iter().any(|name| name.is(called))
    }

    /// Refuses what a page of another origin asks; gives the origin when it is one that was allowed. `host` is the name
    /// by which we were called.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, host: Called<'_>) -> Result<Option<HeaderValue>, Problem> {
        let Some(given) = headers.get(header::ORIGIN) else { return Ok(None) };
        let text = String::from_utf8_lossy(given.as_bytes());
        let origin = text.parse::<Uri>().ok().filter(|uri| uri.scheme().is_some());
        if let Some(origin) = &origin
            && let Some(page) = Called::by_url(origin)
        {
            if page.is(host.plain(origin.scheme_str().unwrap_or_default())) {
                return Ok(None);
            }
            let is_page = |known: &Uri| {
                known.scheme() == origin.scheme() && Called::by_url(known).is_some_and(|known| known.is(page))
            };
            if self.origins.iter().any(is_page) {
                return Ok(Some(given.clone()));
            }
        }
        let detail = format!(
            "the Origin is {}: pages of this server may ask, and those of origins given with --allowed-origin or \
             --public-url",
            shown(&text)
        );
        Err(Problem::new(Code::UnknownOrigin, detail))
    }
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
        hosts.check_origin(&headers, Called::by(host).unwrap()).is_ok()
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
            "localhost:x",
            "localhost:99999",
            "me@localhost",
            "[::1",
            "::1",
        ] {
            assert!(!host(&hosts, other), "{other}");
        }
        let [path, url]: [Uri; 2] = ["/", "http://localhost:7433/x"].map(|uri| uri.parse().unwrap());
        let nothing = HeaderMap::new();
        assert_eq!(hosts.check_host(&path, &nothing, ends()).unwrap_err().code(), Code::UnknownHost);
        assert!(hosts.check_host(&url, &nothing, ends()).is_ok());
        // The one in the URL counts, and of two nobody can say which.
        let evil: Uri = "http://evil.example/x".parse().unwrap();
        let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        assert_eq!(hosts.check_host(&evil, &headers, ends()).unwrap_err().code(), Code::UnknownHost);
        for second in ["evil.example", "localhost"] {
            headers.append(header::HOST, HeaderValue::from_static(second));
            assert_eq!(hosts.check_host(&path, &headers, ends()).unwrap_err().code(), Code::UnknownHost);
        }
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
