// A particle of about a pixel: all of the GL point, at the depth of its front, so that early depth tests remain.
flat in uint v_id;

out uint o_id;

void main() { o_id = v_id; }
