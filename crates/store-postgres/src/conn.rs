//! One connection: made, prepared, used within time limits.

use std::{collections::HashMap, future::poll_fn, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
    task::AbortHandle,
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Connection, Notification, Row, Socket, Statement,
    types::{ToSql, Type},
};
use tracing::{debug, warn};

use crate::{Durability, fault::Fault, target::Target};

/// Oldest server, as `server_version_num` has it: snapshots and what we say about them came with 13.
const OLDEST_VERSION: i32 = 130_000;
/// What the answer to a statement may take longer than the statement.
const ANSWER_GRACE: Duration = Duration::from_secs(2);

/// What goes where: parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// One connection.
pub(crate) struct Conn {
    client: Client,
    statements: HashMap<&'static str, Statement>,
    driver: AbortHandle,
    target: Arc<Target>,
    /// An answer did not come in time; whatever comes now would be of no use.
    given_up: bool,
    /// The process that serves it.
    pub(crate) process_id: i32,
}

impl Drop for Conn {
    fn drop(&mut self) {
        // Not left to end by itself: it would wait for answers of a server that hangs.
        self.driver.abort();
    }
}

impl Conn {
    /// Connects to the first server that is there and takes writes. `notices` gets notifications.
    pub(crate) async fn open(
        target: &Arc<Target>,
        notices: Option<UnboundedSender<Notification>>,
    ) -> Result<Self, Fault> {
        let mut said = Vec::new();
        for (name, config) in &target.servers {
            let welcome = async {
                let (client, connection) = config.connect(target.tls.0.clone()).await?;
                let driver = tokio::spawn(drive(connection, notices.clone())).abort_handle();
                let mut conn = Self {
                    client,
                    statements: HashMap::new(),
                    driver,
                    target: Arc::clone(target),
                    given_up: false,
                    process_id: 0,
                };
                conn.settle().await?;
                Ok(conn)
            };
            match timeout(target.welcome, welcome).await {
                Ok(Ok(conn)) => return Ok(conn),
                Ok(Err(fault @ Fault::Refused(_))) => return Err(fault),
                Ok(Err(fault)) => said.push((name, fault.to_string())),
                Err(_) => said.push((name, Fault::Hung(target.welcome).to_string())),
            }
        }
        // A lone server's name is in the error already.
        let told = match said.as_slice() {
            [(_, what)] => what.clone(),
            all => all.iter().map(|(name, what)| format!("{name}: {what}")).collect::<Vec<_>>().join("; "),
        };
        Err(Fault::Unreachable(told))
    }

    /// Checks the server and makes the session as this crate's statements want it.
    async fn settle(&mut self) -> Result<(), Fault> {
        let Target { config, .. } = &*self.target;
        let durable = config.durability == Durability::Full;
        let millis = config.statement_timeout.as_millis().to_string();
        let row = self.client.query_typed(SETTLE, &[(&millis, Type::TEXT), (&durable, Type::BOOL)]).await?;
        let row = row.first().ok_or_else(|| Fault::Damaged("the server told nothing about itself".into()))?;
        let (version, name): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
        if version < OLDEST_VERSION {
            return Err(Fault::Refused(format!("the server is PostgreSQL {name}; this needs 13 or newer")));
        }
        self.process_id = row.try_get(2)?;
        let fsync: String = row.try_get(3)?;
        if fsync != "on" {
            warn!(database = %self.target.place, "fsync is off on the server: a crash of its machine may damage what is stored");
        }
        Ok(())
    }

    /// Whether it can still be used.
    pub(crate) fn is_usable(&self) -> bool {
        !self.given_up && !self.client.is_closed()
    }

    /// Runs a statement, which is prepared when it comes first. `{schema}` in it stands for the schema.
    pub(crate) async fn query(&mut self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        let limit = self.target.config.statement_timeout + ANSWER_GRACE;
        let known = self.statements.get(sql).cloned();
        let work = async {
            let statement = match known {
                Some(statement) => statement,
                None => {
                    let statement = self.client.prepare(&self.target.sql(sql)).await?;
                    self.statements.insert(sql, statement.clone());
                    statement
                }
            };
            Ok(self.client.query(&statement, params).await?)
        };
        match timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_) => {
                self.given_up = true;
                Err(Fault::Hung(limit))
            }
        }
    }

    /// Runs several statements without parameters, in one transaction unless they say otherwise.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        let limit = self.target.config.statement_timeout + ANSWER_GRACE;
        let sql = self.target.sql(sql);
        match timeout(limit, self.client.batch_execute(&sql)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.given_up = true;
                Err(Fault::Hung(limit))
            }
        }
    }
}

/// What a session must be like.
///
/// Statements read heads again after they waited for a lock, so they need READ COMMITTED, whatever the database's
/// default is. All of them are made for one plan each, by index; a table that is still empty when the plan is made must
/// not turn it into a scan that is kept while the table grows. A server that cannot reach us any more shall notice.
const SETTLE: &str = "
SELECT current_setting('server_version_num')::int4, current_setting('server_version'), pg_backend_pid(), current_setting('fsync'),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_deferrable', 'off', false),
    set_config('statement_timeout', $1, false),
    set_config('idle_in_transaction_session_timeout', $1, false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false),
    CASE WHEN NOT $2 THEN set_config('synchronous_commit', 'off', false)
         WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
    CASE WHEN current_setting('server_version_num')::int4 >= 140000
         THEN set_config('client_connection_check_interval', '10s', false) END";

/// Moves bytes for a connection until it ends.
async fn drive<T: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<Socket, T>,
    notices: Option<UnboundedSender<Notification>>,
) {
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                if let Some(notices) = &notices {
                    // Nobody listens any more: then the connection is about to be dropped.
                    let _ = notices.send(notification);
                }
            }
            Ok(AsyncMessage::Notice(notice)) => debug!(%notice, "the database server remarks"),
            Ok(_) => {}
            Err(error) => {
                debug!(error = %crate::fault::words(&error), "a connection to the database ended");
                return;
            }
        }
    }
}
