//! One file a verb.

pub mod audit;
pub mod cancel;
pub mod check;
pub mod detach;
pub mod doctor;
pub mod explain;
pub mod follow;
pub mod get;
pub mod init;
pub mod lineage;
pub mod log;
pub mod op;
pub mod plan;
pub mod register;
pub mod report;
pub mod run;
pub mod schema;
pub mod status;
pub mod store;
pub mod table;
pub mod unchanged;
pub mod verdict;
pub mod worker;
