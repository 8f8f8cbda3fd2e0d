//! A disk as SQLite sees it: a table of C functions.
//!
//! SQLite's contract, on which every SAFETY comment here rests: it calls a VFS only with the pointer that was
//! registered, with names that are C strings, and with buffers of the length it says; the methods of a file only after
//! `xOpen` succeeded, with the memory that `xOpen` was given, and never after `xClose`; and one connection, hence one
//! file, is used by one thread at a time.

mod file;

use std::{
    ffi::{CStr, CString, c_char, c_int},
    mem::size_of,
    ptr,
    sync::{
        Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use rusqlite::ffi;

use self::file::OpenFile;
use crate::{
    DiskError,
    disk::{OpenError, OpenMode, SharedState, State},
};

const PATH_BYTES_MAX: c_int = 512;

/// The reference of a VFS to its disk. The registration lives as long as the process, because a connection may outlive the
/// disk; the disk's content does not.
type Registered = Weak<std::sync::Mutex<State>>;

/// Registers a disk with SQLite; returns the name.
pub(crate) fn register(disk: &SharedState) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let name = format!("fault-disk-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let c_name = CString::new(name.as_str()).unwrap_or_default();
    let registered: Registered = std::sync::Arc::downgrade(&disk.0);
    let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: int(size_of::<OpenFile>()),
        mxPathname: PATH_BYTES_MAX,
        pNext: ptr::null_mut(),
        zName: c_name.into_raw(),
        pAppData: Box::into_raw(Box::new(registered)).cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }));
    // SAFETY: `vfs`, its name and its data are leaked, so they live as long as SQLite may use them.
    let code = unsafe { ffi::sqlite3_vfs_register(vfs, 0) };
    assert_eq!(code, ffi::SQLITE_OK, "SQLite takes every VFS unless it is out of memory");
    name
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let file = file.cast::<OpenFile>();
    // SAFETY: SQLite gives `szOsFile` bytes of suitably aligned memory, and expects the methods to be null on failure.
    unsafe { (*file).base.pMethods = ptr::null() };
    // SAFETY: see the module; `name` is null or a C string.
    let (disk, name) = unsafe { (disk_of(vfs), text(name)) };
    let journal = ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
    let mode = OpenMode {
        create: flags & ffi::SQLITE_OPEN_CREATE != 0,
        journal: flags & journal != 0,
        delete_on_close: flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0,
    };
    let opened = disk.ok_or(OpenError::NoSuchFile).and_then(|disk| disk.open(name.as_deref(), mode));
    match opened {
        Ok(handle) => {
            // SAFETY: the memory is ours until `xClose`; `out_flags` is null or a place for an integer.
            unsafe {
                file.write(OpenFile::new(handle));
                if let Some(out_flags) = out_flags.as_mut() {
                    *out_flags = flags;
                }
            }
            ffi::SQLITE_OK
        }
        Err(OpenError::NoSuchFile) => ffi::SQLITE_CANTOPEN,
        Err(OpenError::Failed(error)) => code(error, ffi::SQLITE_CANTOPEN),
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: see the module.
    let (disk, name) = unsafe { (disk_of(vfs), text(name)) };
    let (Some(disk), Some(name)) = (disk, name) else { return ffi::SQLITE_IOERR_DELETE };
    match disk.delete(&name, sync_directory != 0) {
        Ok(true) => ffi::SQLITE_OK,
        Ok(false) => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(error) => code(error, ffi::SQLITE_IOERR_DELETE),
    }
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: see the module.
    let (disk, name) = unsafe { (disk_of(vfs), text(name)) };
    let (Some(disk), Some(name)) = (disk, name) else { return ffi::SQLITE_IOERR_ACCESS };
    match disk.exists(&name) {
        Ok(exists) => {
            // SAFETY: SQLite gives a place for the result.
            unsafe { *result = c_int::from(exists) };
            ffi::SQLITE_OK
        }
        Err(error) => code(error, ffi::SQLITE_IOERR_ACCESS),
    }
}

/// The directory is flat: a name is its own full path.
unsafe extern "C" fn full_pathname(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    out_bytes: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: `name` is a C string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if int(bytes.len()) > out_bytes {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has `out_bytes` bytes, which are enough, and is not part of `name`.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: the default VFS is there and has all methods; the arguments are passed on as SQLite gave them.
    unsafe {
        let system = ffi::sqlite3_vfs_find(ptr::null());
        (*system).xRandomness.map_or(0, |randomness| randomness(system, bytes, out))
    }
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    std::thread::sleep(std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
    micros
}

unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: as in `randomness`.
    unsafe {
        let system = ffi::sqlite3_vfs_find(ptr::null());
        (*system).xCurrentTime.map_or(ffi::SQLITE_ERROR, |current_time| current_time(system, out))
    }
}

unsafe extern "C" fn last_error(_vfs: *mut ffi::sqlite3_vfs, _bytes: c_int, _out: *mut c_char) -> c_int {
    0
}

/// The disk of a VFS, if it is still there.
///
/// # Safety
/// `vfs` was registered by [`register`].
unsafe fn disk_of(vfs: *mut ffi::sqlite3_vfs) -> Option<SharedState> {
    // SAFETY: `pAppData` was made from a `Box<Registered>` that is never freed.
    let registered = unsafe { &*(*vfs).pAppData.cast::<Registered>() };
    registered.upgrade().map(SharedState)
}

/// A name.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn text(name: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    name.map(|name| name.to_string_lossy().into_owned())
}

fn code(error: DiskError, io_error: c_int) -> c_int {
    match error {
        DiskError::Io => io_error,
        DiskError::Full => ffi::SQLITE_FULL,
    }
}

fn int(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}
