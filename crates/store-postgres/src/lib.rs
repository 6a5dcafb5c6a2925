//! The PostgreSQL store of Taffrail's relay, for several machines.
