//! Which database, as a connection string says it.

use std::{path::PathBuf, time::Duration};

use taffrail_relay::StoreError;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::{
    Config,
    fault::Fault,
    params::{Own, take_own},
    tls::Tls,
};

/// Longest time for reaching one address, when the connection string does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that is silent for this long is asked whether its other end is there, when the connection string does
/// not say. Two hours, the usual default, is longer than firewalls and people wait.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Time between two such questions, and how many may stay without an answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// What was sent and not acknowledged for this long means that the other end is gone.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the longest identifier that PostgreSQL keeps whole.
const IDENTIFIER_BYTES: usize = 63;

/// The database, and everything about how it is reached and used.
pub(crate) struct Target {
    /// One for each server that may be the primary, with its name.
    pub(crate) servers: Vec<(String, tokio_postgres::Config)>,
    /// For people: `database "taffrail" on db.example:5432`. Holds no secret.
    pub(crate) place: String,
    /// The schema, quoted for SQL.
    pub(crate) quoted: String,
    /// The same without quotes, which is also the channel of notifications.
    pub(crate) schema: String,
    pub(crate) tls: Tls,
    /// Longest time for all that has to happen until one server has taken us in: addresses, TLS, password, settings.
    pub(crate) welcome: Duration,
    pub(crate) config: Config,
}

impl Target {
    /// Reads a connection string.
    pub(crate) fn parse(url: &str, mut config: Config) -> Result<Self, StoreError> {
        let refuse = |why: String| Fault::Refused(why).on("the connection string of the store", "use");
        let (rest, own) = take_own(url).map_err(refuse)?;
        let Own { schema, root_certificates, verify } = own;
        let mut base: tokio_postgres::Config = rest.parse().map_err(|e| {
            let why = crate::fault::words(&e);
            refuse(format!("{why}; it reads like postgres://user:password@host:5432/database?sslmode=require"))
        })?;
        if verify {
            base.ssl_mode(tokio_postgres::config::SslMode::Require);
        }
        if let Some(schema) = schema {
            config.schema = schema;
        }
        if root_certificates.is_some() {
            config.root_certificates = root_certificates.map(PathBuf::from);
        }
        check_schema(&config.schema).map_err(refuse)?;
        if base.get_hosts().is_empty() && base.get_hostaddrs().is_empty() {
            return Err(refuse("it names no host; write postgres://user@host/database".into()));
        }
        let servers = servers(&base).map_err(refuse)?;
        let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
        let database = base.get_dbname().or(base.get_user()).unwrap_or("(default)");
        let place = format!("database {database:?} on {}", names.join(", "));
        let tls = Tls::new(base.get_ssl_mode(), config.root_certificates.as_deref())
            .map_err(|why| Fault::Refused(why).on(&place, "prepare TLS for"))?;
        Ok(Self {
            servers,
            place,
            quoted: format!("\"{}\"", config.schema),
            schema: config.schema.clone(),
            tls,
            // A name may have two addresses, of which one does not answer.
            welcome: base.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT) * 2,
            config,
        })
    }

    /// A statement with the schema's name in it.
    pub(crate) fn sql(&self, template: &str) -> String {
        template.replace("{schema}", &self.quoted)
    }

    /// The error that a caller sees. `doing` completes "could not …", followed by the place.
    pub(crate) fn error(&self, doing: &str, fault: Fault) -> StoreError {
        fault.on(&self.place, doing)
    }
}

fn check_schema(schema: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if schema.is_empty() || schema.len() > IDENTIFIER_BYTES || !schema.chars().all(good) {
        return Err(format!(
            "the schema {schema:?} is not a name of at most {IDENTIFIER_BYTES} letters, digits, `_` and `-`"
        ));
    }
    Ok(())
}

/// One configuration a server: so that each gets a time limit of its own, also for what comes after its socket
/// answered, and an error tells which server said what.
fn servers(base: &tokio_postgres::Config) -> Result<Vec<(String, tokio_postgres::Config)>, String> {
    let (hosts, addrs, ports) = (base.get_hosts(), base.get_hostaddrs(), base.get_ports());
    let count = hosts.len().max(addrs.len());
    if !hosts.is_empty() && !addrs.is_empty() && hosts.len() != addrs.len() {
        return Err(format!("it names {} hosts and {} addresses of hosts", hosts.len(), addrs.len()));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("it names {count} hosts and {} ports", ports.len()));
    }
    let each = (0..count).map(|i| {
        let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
        let mut one = settings(base);
        one.port(port);
        if let Some(addr) = addrs.get(i) {
            one.hostaddr(*addr);
        }
        let name = match hosts.get(i) {
            Some(Host::Tcp(host)) => {
                one.host(host);
                if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
            }
            #[cfg(unix)]
            Some(Host::Unix(dir)) => {
                one.host_path(dir);
                format!("{}/.s.PGSQL.{port}", dir.display())
            }
            None => addrs.get(i).map(|addr| format!("{addr}:{port}")).unwrap_or_default(),
        };
        (name, one)
    });
    Ok(each.collect())
}

/// Everything of a configuration but its hosts.
fn settings(base: &tokio_postgres::Config) -> tokio_postgres::Config {
    let mut one = tokio_postgres::Config::new();
    if let Some(user) = base.get_user() {
        one.user(user);
    }
    if let Some(password) = base.get_password() {
        one.password(password);
    }
    if let Some(dbname) = base.get_dbname() {
        one.dbname(dbname);
    }
    if let Some(options) = base.get_options() {
        one.options(options);
    }
    one.application_name(base.get_application_name().unwrap_or("taffrail"));
    one.ssl_mode(base.get_ssl_mode());
    one.ssl_negotiation(base.get_ssl_negotiation());
    one.channel_binding(base.get_channel_binding());
    one.load_balance_hosts(base.get_load_balance_hosts());
    one.connect_timeout(base.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT));
    one.tcp_user_timeout(base.get_tcp_user_timeout().copied().unwrap_or(TCP_USER_TIMEOUT));
    one.keepalives(base.get_keepalives());
    let unset = tokio_postgres::Config::new().get_keepalives_idle();
    let idle = base.get_keepalives_idle();
    one.keepalives_idle(if idle == unset { KEEPALIVE_IDLE } else { idle });
    one.keepalives_interval(base.get_keepalives_interval().unwrap_or(KEEPALIVE_INTERVAL));
    one.keepalives_retries(base.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES));
    // A standby can keep no log: the primary is looked for, whatever the connection string says.
    one.target_session_attrs(TargetSessionAttrs::ReadWrite);
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        let parsed = Target::parse(url, Config::default());
        parsed.map_or_else(|e| format!("{e}: {}", std::error::Error::source(&e).unwrap()), |target| target.place)
    }

    #[test]
    fn every_form_is_read() {
        let forms = [
            ("postgres://me:pw@db.example/logs", "database \"logs\" on db.example:5432"),
            ("postgresql://me@db.example:6000", "database \"me\" on db.example:6000"),
            ("postgres://me:pw@a:1,b:2/logs", "database \"logs\" on a:1, b:2"),
            ("postgres://me@[::1]:7/logs", "database \"logs\" on [::1]:7"),
            ("postgres://me@%2Frun%2Fpg/logs", "database \"logs\" on /run/pg/.s.PGSQL.5432"),
            ("host=a,b port=1,2 user=me password='p w' dbname=logs", "database \"logs\" on a:1, b:2"),
            ("host=a hostaddr=10.0.0.1 dbname=x sslmode=disable", "database \"x\" on a:5432"),
            ("hostaddr=10.0.0.1 dbname=x user=y sslmode=disable", "database \"x\" on 10.0.0.1:5432"),
        ];
        for (url, expected) in forms {
            assert_eq!(place(url), expected, "{url}");
        }
    }

    #[test]
    fn bad_ones_say_what_is_wrong_and_no_password() {
        let bad = [
            ("postgres:///logs", "no host"),
            ("postgres://me:s3cret@h/logs?colour=red", "unknown option `colour`"),
            ("postgres://me:s3cret@h/logs?port=x", "invalid value for option `port`"),
            ("postgres://me:s3cret@h/logs?schema=a.b", "schema \"a.b\""),
            ("postgres://me:s3cret@h/logs?schema=", "schema \"\""),
            ("postgres://me:s3cret@h/logs?sslmode=require&sslrootcert=/missing.pem", "/missing.pem"),
            ("host=a,b,c port=1,2 password=s3cret", "3 hosts and 2 ports"),
            ("host=a password='s3cret", "unterminated"),
            ("/var/lib/store.db", "postgres://"),
            ("", "no host"),
        ];
        for (url, expected) in bad {
            let told = place(url);
            assert!(told.contains(expected), "{url}: {told}");
            assert!(!told.contains("s3cret"), "{told}");
        }
    }

    #[test]
    fn own_parameters_have_precedence() {
        let config = Config { schema: "other".into(), ..Config::default() };
        let target = Target::parse("postgres://h/db?schema=mine&application_name=x", config.clone()).unwrap();
        assert_eq!((target.quoted.as_str(), target.schema.as_str()), ("\"mine\"", "mine"));
        assert_eq!(target.servers[0].1.get_application_name(), Some("x"));
        let target = Target::parse("host=h schema=mine dbname=db", config.clone()).unwrap();
        assert_eq!(target.schema, "mine");
        let target = Target::parse("host=h", config).unwrap();
        assert_eq!(target.schema, "other");
        assert_eq!(target.servers[0].1.get_application_name(), Some("taffrail"));
        assert_eq!(target.servers[0].1.get_keepalives_idle(), KEEPALIVE_IDLE);
        assert_eq!(target.servers[0].1.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn verifying_modes_are_the_strict_one() {
        for mode in ["verify-full", "verify-ca", "require"] {
            for url in [format!("postgres://h/db?sslmode={mode}"), format!("host=h sslmode={mode}")] {
                let target = Target::parse(&url, Config::default()).unwrap();
                let mode = target.servers[0].1.get_ssl_mode();
                assert_eq!(mode, tokio_postgres::config::SslMode::Require, "{url}");
            }
        }
    }
}
