//! The servers, their database, and the balancer before them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use taffrail_testutils::{
    balancer::Balancer,
    postgres::{PgCluster, PgOptions},
};
use taffrail_transport::client::Client;

use crate::{
    deployed::{Deployed, client},
    world::World,
};

pub(super) struct Fleet<'a> {
    pub(super) balancer: Balancer,
    pub(super) servers: Vec<Deployed<'a>>,
    /// The operator's token, which all servers take, and its file.
    token: String,
    pub(super) token_file: PathBuf,
    pub(super) database_url: String,
    /// Last: the servers end before it.
    pub(super) database: PgCluster,
}

impl<'a> Fleet<'a> {
    /// Starts it. What the database has acknowledged survives its being killed.
    pub(super) fn start(world: &'a World, servers: usize) -> Self {
        let database = PgCluster::with(&PgOptions { fsync: true, ..PgOptions::default() });
        let database_url = database.url(&database.fresh_database());
        let token = uuid::Uuid::new_v4().simple().to_string();
        let token_file = world.write("token", &token);
        fs::set_permissions(&token_file, fs::Permissions::from_mode(0o600)).unwrap();
        let file = token_file.display().to_string();
        let args = ["--store", &database_url, "--token-file", &file];
        let servers: Vec<_> = (0..servers).map(|n| Deployed::start(world, &format!("server-{n}"), &args)).collect();
        let balancer = Balancer::start(&servers.iter().map(Deployed::addr).collect::<Vec<_>>());
        Self { balancer, servers, token, token_file, database_url, database }
    }

    /// A client that comes to any server.
    pub(super) fn client(&self) -> Client {
        client(&self.balancer.url(), &self.token)
    }

    /// A client of one server.
    pub(super) fn client_of(&self, n: usize) -> Client {
        client(&self.servers[n].url(), &self.token)
    }

    /// What the servers have complained about.
    pub(super) fn log(&self) -> String {
        let complaints = |server: &Deployed<'_>| {
            let log = server.log();
            let lines: Vec<_> = log.lines().filter(|line| !line.contains(" INFO ")).map(str::to_owned).collect();
            format!("{}:\n{}", server.url(), lines[lines.len().saturating_sub(30)..].join("\n"))
        };
        self.servers.iter().map(complaints).collect::<Vec<_>>().join("\n")
    }
}
