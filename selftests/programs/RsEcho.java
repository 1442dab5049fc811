// SPDX-License-Identifier: GPL-2.0-only
/* As rs_echo.c, in Java: HOST PORT BYTES. */

import java.io.DataInputStream;
import java.net.Socket;
import java.util.Arrays;

class RsEcho {
	static final int PIECE = 65536;

	public static void main(String[] args) throws Exception {
		Socket server = new Socket(args[0], Integer.parseInt(args[1]));
		DataInputStream from = new DataInputStream(server.getInputStream());
		byte[] out = new byte[PIECE], in = new byte[PIECE];
		int done;

		for (done = 0; done < Integer.parseInt(args[2]); done += PIECE) {
			for (int i = 0; i < PIECE; i++)
				out[i] = (byte)((done >> 16) + i * 31);
			server.getOutputStream().write(out);
			from.readFully(in);
			if (!Arrays.equals(in, out))
				throw new Exception("what came back is something else");
		}
		System.out.println(done + " bytes came back");
	}
}
