//! The nouns of Avow and how each becomes bytes.
//!
//! Everything the other crates say to each other is a value defined here: digests, records and their
//! canonical encoding, expressions, the symbolic plan and its expansion into members, the binding of a
//! member to an [`action::Action`], journal events and their fold, and the registration ledger's lines.
//! Deliberately absent: files, clocks, processes, randomness, threads. The crate that makes a number and
//! the crate that checks it share this vocabulary and nothing else, so every digest here is pinned by a
//! test.
//!
//! In the order a reader meets them: [`value::Value`], [`digest`], [`canonical`], [`tree::Tree`],
//! [`expression::Expression`] and [`template::Template`], [`axis::Axis`] and [`seed`], [`plan::Plan`],
//! [`claim::Claim`], [`expand`], [`action::Action`] and [`bind`], [`attempt::Attempt`], [`journal`],
//! [`ledger`], [`op::OpSignature`].

pub mod action;
pub mod attempt;
pub mod axis;
pub mod bind;
pub mod canonical;
pub mod claim;
pub mod digest;
pub mod expand;
pub mod expression;
pub mod journal;
pub mod label;
pub mod ledger;
pub mod loads;
pub mod matched;
pub mod op;
pub mod plan;
pub mod present;
pub mod reads;
pub mod search;
pub mod seed;
pub mod summary;
pub mod template;
pub mod tree;
pub mod value;
