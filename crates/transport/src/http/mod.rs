//! The HTTP surface: REST, server-sent events, ingest.
