//! Images that stages run in instead of on the machine itself: what an image is, and the program that runs it here.

mod container;
mod layout;

pub use layout::{ImageError, identity};

pub(crate) use container::{Container, Images, Inside, passed};
