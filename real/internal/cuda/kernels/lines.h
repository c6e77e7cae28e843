// Words of user buffers at any address, and lines of 128 bytes that carry
// their own flag (LL128).
#pragma once
#include "device.h"

// Words at the end of a buffer, or of a buffer that is not 8-byte aligned, are
// moved byte by byte.
SLOW u64 getBytes(u64 base, u64 off, u64 end) {
  u64 v = 0;
  for (int i = 0; i < 8; i++)
    if (off + i < end) v |= (u64)((const u8*)base)[off + i] << (8 * i);
  return v;
}
SLOW void putBytes(u64 base, u64 off, u64 end, u64 v) {
  for (int i = 0; i < 8; i++)
    if (off + i < end) ((u8*)base)[off + i] = (u8)(v >> (8 * i));
}
DEVICE u64 getWord(u64 base, u64 off, u64 end) {
  if (off + 8 <= end && ((base + off) & 7) == 0) return load8(base + off);
  return getBytes(base, off, end);
}
DEVICE void putWord(u64 base, u64 off, u64 end, u64 v) {
  if (off + 8 <= end && ((base + off) & 7) == 0) store8(base + off, v);
  else putBytes(base, off, end, v);
}

// A line of 128 bytes is 15 words and a flag: lane 7 of its eight lanes holds
// the flag. A warp handles LINES of them at once.
enum { LINES = WARP == 1 ? 1 : WARP / 8 };

DEVICE u64 lineInWarp() { return tid() % WARP / 8; }
DEVICE bool flagLane(u32 lane) { return lane == 7; }

// lineOff is the place of a lane's words in the payload.
DEVICE u64 lineOff(u64 line, u32 lane) { return line * 120 + 16 * lane; }

DEVICE void sendLane(u64 line, u32 lane, u64 x, u64 y) {
  syncWarp();
  storeLine2(line + 16 * lane, x, y);
}

// tryLane reads a lane and tells whether its line carries the flag, as far as
// this lane can tell: lanes that hold data have nothing to say. The lanes must
// have met before, so that the words are no older than the flag, and all must
// have said yes. On a CPU, the lane itself looks at the flag first.
DEVICE bool tryLane(u64 line, u32 lane, u64 flag, u64& x, u64& y) {
  if (WARP == 1 && loadAcquire8(line + 120) != flag) return false;
  loadLine2(line + 16 * lane, x, y);
  return !flagLane(lane) || y == flag;
}

// A lane's words in one go where they are whole, as nearly all are.
DEVICE bool whole(u64 base, u64 off, u64 end, u32 lane) { return ((base + off) & 7) == 0 && off + (flagLane(lane) ? 8 : 16) <= end; }

DEVICE void readLane(u64 base, u64 off, u64 end, u32 lane, u64 flag, u64& x, u64& y) {
  y = flag;
  if (whole(base, off, end, lane)) {
    x = load8(base + off);
    if (!flagLane(lane)) y = load8(base + off + 8);
    return;
  }
  x = getBytes(base, off, end);
  if (!flagLane(lane)) y = getBytes(base, off + 8, end);
}
DEVICE void writeLane(u64 base, u64 off, u64 end, u32 lane, u64 x, u64 y) {
  if (whole(base, off, end, lane)) {
    store8(base + off, x);
    if (!flagLane(lane)) store8(base + off + 8, y);
    return;
  }
  putBytes(base, off, end, x);
  if (!flagLane(lane)) putBytes(base, off + 8, end, y);
}
