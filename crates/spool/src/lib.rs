//! JSONL spool files with rotation, limits and recovery
