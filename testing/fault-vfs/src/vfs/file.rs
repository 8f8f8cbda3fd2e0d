//! The methods of an open file.

use std::{
    ffi::{c_int, c_void},
    ptr, slice,
};

use rusqlite::ffi;

use super::{code, size};
use crate::{
    DiskError,
    disk::{Busy, Handle, LockLevel, SlotLock},
};

/// The properties of disks that SQLite assumes on Unix.
const SECTOR_BYTES: c_int = 4_096;
const CHARACTERISTICS: c_int = ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE;

/// An open file in the memory that SQLite gave for it.
#[repr(C)]
pub(super) struct OpenFile {
    pub(super) base: ffi::sqlite3_file,
    handle: *mut Handle,
}

impl OpenFile {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            base: ffi::sqlite3_file { pMethods: &raw const METHODS },
            handle: Box::into_raw(Box::new(handle)),
        }
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The handle of an open file.
///
/// # Safety
/// `file` was opened by this VFS and is not closed, and no other reference to its handle is in use: SQLite calls the
/// methods of a file one at a time.
unsafe fn handle_of<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Handle {
    // SAFETY: the caller's; `xOpen` wrote an `OpenFile` there, whose handle is freed only by `xClose`.
    unsafe { &mut *(*file.cast::<OpenFile>()).handle }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the handle came from a box; SQLite uses the file no more.
    drop(unsafe { Box::from_raw((*file.cast::<OpenFile>()).handle) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, into: *mut c_void, bytes: c_int, at: i64) -> c_int {
    // SAFETY: SQLite gives a buffer of `bytes` bytes; their old content does not matter.
    let into = unsafe {
        ptr::write_bytes(into.cast::<u8>(), 0, size(bytes));
        slice::from_raw_parts_mut(into.cast::<u8>(), size(bytes))
    };
    // SAFETY: see the module above.
    match unsafe { handle_of(file) }.read(size(at), into) {
        Ok(count) if count == into.len() => ffi::SQLITE_OK,
        // The rest must be zero, and is.
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(error) => code(error, ffi::SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    bytes: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite gives a buffer of `bytes` bytes.
    let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), size(bytes)) };
    // SAFETY: see the module above.
    done(unsafe { handle_of(file) }.write(size(at), from), ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: see the module above.
    done(unsafe { handle_of(file) }.truncate(size(length)), ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: see the module above.
    done(unsafe { handle_of(file) }.sync(), ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: see the module above.
    match unsafe { handle_of(file) }.len() {
        Ok(length) => {
            // SAFETY: SQLite gives a place for the result.
            unsafe { *out = i64::try_from(length).unwrap_or(i64::MAX) };
            ffi::SQLITE_OK
        }
        Err(error) => code(error, ffi::SQLITE_IOERR_FSTAT),
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: see the module above.
    free(unsafe { handle_of(file) }.lock(lock_level(level)))
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: see the module above.
    unsafe { handle_of(file) }.unlock(lock_level(level));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: see the module above; SQLite gives a place for the result.
    unsafe { *out = c_int::from(handle_of(file).is_reserved()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut ffi::sqlite3_file, _op: c_int, _arg: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR_BYTES
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    CHARACTERISTICS
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    make: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: see the module above; SQLite gives a place for the address.
    unsafe { *out = handle_of(file).map_memory(size(region), size(bytes), make != 0) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    let slots = ((1_u32 << count) - 1) << first;
    let lock = match flags {
        flags if flags & ffi::SQLITE_SHM_UNLOCK != 0 => SlotLock::Unlock,
        flags if flags & ffi::SQLITE_SHM_SHARED != 0 => SlotLock::Shared,
        _ => SlotLock::Exclusive,
    };
    // SAFETY: see the module above.
    free(unsafe { handle_of(file) }.lock_memory(slots, lock))
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: see the module above.
    unsafe { handle_of(file) }.memory_barrier();
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: see the module above.
    unsafe { handle_of(file) }.unmap_memory();
    ffi::SQLITE_OK
}

fn done(result: Result<(), DiskError>, io_error: c_int) -> c_int {
    result.map_or_else(|error| code(error, io_error), |()| ffi::SQLITE_OK)
}

fn free(result: Result<(), Busy>) -> c_int {
    result.map_or(ffi::SQLITE_BUSY, |()| ffi::SQLITE_OK)
}

fn lock_level(level: c_int) -> LockLevel {
    match level {
        ffi::SQLITE_LOCK_NONE => LockLevel::Unlocked,
        ffi::SQLITE_LOCK_SHARED => LockLevel::Shared,
        ffi::SQLITE_LOCK_RESERVED => LockLevel::Reserved,
        ffi::SQLITE_LOCK_PENDING => LockLevel::Pending,
        _ => LockLevel::Exclusive,
    }
}
