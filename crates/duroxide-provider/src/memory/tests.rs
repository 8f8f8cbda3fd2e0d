use super::MemoryEngine;

crate::engine_stories!(MemoryEngine::default());
